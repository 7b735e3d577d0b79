"""``--config FILE.yaml``: option values from a file. A flag on the command line wins.

Keys are option names, written as on the command line without the dashes (``cache-mib``; the
underscore form ``cache_mib`` is read too), or argument names (``data``). Values pass the same
checks as on the command line; ``no-bias: true`` and ``bias: false`` mean the same, and null is as
good as leaving the key out. ``kernel`` may be a name or a mapping, as in a kernel file. So the
``settings`` of a training report are a config file. Paths are taken from the current directory, as
if they had been typed.
"""

from __future__ import annotations

from typing import Any

import click
import yaml

from kfu.cli.main import nearest
from kfu.errors import SettingsError
from kfu.io.source import reason_of

CONFIG_PATH = "kfu.config"  # where the context keeps the path


def load_yaml_mapping(path: str) -> dict[str, Any]:
    """The mapping that ``path`` holds; anything else is a SettingsError that says where."""
    try:
        with open(path, encoding="utf-8") as stream:
            content = yaml.safe_load(stream)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not valid YAML"
        raise SettingsError(f"{path}{line}: {problem}; write 'key: value' lines") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{path}: not a text file; give a YAML file") from None
    except OSError as error:
        raise SettingsError(f"{path}: {reason_of(error)}; give a YAML file") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(f"{path}: holds a {type(content).__name__}, not 'key: value' lines")
    return {str(key): value for key, value in content.items()}


def spellings(command: click.Command) -> dict[str, tuple[click.Parameter, bool]]:
    """Each key a file may use -> (parameter, whether the key negates it)."""
    known: dict[str, tuple[click.Parameter, bool]] = {}
    for parameter in command.params:
        if parameter.name is None or parameter.name in ("config", "help"):
            continue
        if isinstance(parameter, click.Argument):
            known[parameter.name] = (parameter, False)
            continue
        for name in parameter.opts:
            if name.startswith("--"):
                known[name[2:]] = (parameter, False)
        for name in parameter.secondary_opts:
            if name.startswith("--"):
                known[name[2:]] = (parameter, True)
    return known


def as_typed(parameter: click.Parameter, value: Any, negated: bool) -> Any:
    """The YAML value in the form the command line would have given."""
    if negated:
        if not isinstance(value, bool):
            raise click.BadParameter("is a switch; write true or false")
        return not value
    if parameter.multiple:
        if isinstance(value, dict):
            return [f"{key}={item}" for key, item in value.items()]
        return list(value) if isinstance(value, list) else [value]
    if isinstance(value, (list, dict)):
        is_kernel = parameter.name == "kernel"
        return value if isinstance(value, list) or is_kernel else str(value)
    is_flag = getattr(parameter, "is_flag", False) and not getattr(parameter, "count", False)
    if is_flag and not isinstance(value, bool):
        raise click.BadParameter("is a switch; write true or false")
    return value


def read_config(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Eager callback of ``--config``: the file becomes the defaults of this command."""
    if value is None:
        return None
    ctx.meta[CONFIG_PATH] = value
    known = spellings(ctx.command)
    defaults: dict[str, Any] = {}
    for key, item in load_yaml_mapping(value).items():
        word = key.replace("_", "-")
        if word not in known:
            if key in known:
                word = key
            else:
                raise SettingsError(
                    f"{value}: unknown key '{key}'{nearest(word, known)}; "
                    f"keys are the options of '{ctx.command_path}'"
                )
        if item is None:
            continue
        parameter, negated = known[word]
        try:
            typed = as_typed(parameter, item, negated)
            parameter.type_cast_value(ctx, typed)
        except click.BadParameter as error:
            raise SettingsError(f"{value}: {key}: {error.message}") from None
        assert parameter.name is not None
        defaults[parameter.name] = typed
    ctx.default_map = {**(ctx.default_map or {}), **defaults}
    return value
