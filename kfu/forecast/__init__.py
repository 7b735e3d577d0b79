"""What a training will take, before it is run: seconds, and the peak of memory.

Time is counted in operations and turned into seconds by pilots: the same machine on a few small
parts of the same rows, whose phases give the rates (laws). Memory is that of the arrays a method
holds at its worst moment, beside what the process holds already (memory_plans).
"""

from kfu.forecast.forecast import Forecast, forecast

__all__ = ["Forecast", "forecast"]
