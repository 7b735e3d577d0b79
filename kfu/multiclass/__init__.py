"""Many classes by binary machines: codes, decodings, bounds and diagnostics."""

from kfu.multiclass.codes import (
    CODES,
    Code,
    code_distance,
    code_name,
    default_decoding,
    ova_code,
    read_code,
    resolve_code,
)
from kfu.multiclass.decoding import (
    DECODINGS,
    Decoding,
    check_decoding,
    class_scores,
    decode,
    decoding_name,
)
from kfu.multiclass.diagnostics import (
    ReverseCdf,
    TrainingErrorBounds,
    agreement_table,
    machine_losses,
    plot_reverse_cdf,
    reverse_cdf,
    training_error_bounds,
    unanimous_fraction,
)
from kfu.multiclass.losses import LOSSES, Loss

__all__ = [
    "CODES",
    "DECODINGS",
    "LOSSES",
    "Code",
    "Decoding",
    "Loss",
    "ReverseCdf",
    "TrainingErrorBounds",
    "agreement_table",
    "check_decoding",
    "class_scores",
    "code_distance",
    "code_name",
    "decode",
    "decoding_name",
    "default_decoding",
    "machine_losses",
    "ova_code",
    "plot_reverse_cdf",
    "read_code",
    "resolve_code",
    "reverse_cdf",
    "training_error_bounds",
    "unanimous_fraction",
]
