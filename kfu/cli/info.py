"""``kfu info``: what a data file, a model or a path is, before one trusts it."""

from __future__ import annotations

from typing import Any

import click
import numpy as np
import scipy.sparse as sp

from kfu.cli import console, inputs, options
from kfu.cli.file_kind import kind_of, load_any_model
from kfu.data import Dataset, check_width, format_label
from kfu.diagnostics import (
    Duplicates,
    FeatureRanges,
    constant_features,
    contradictory_rows,
    looks_like_regression,
    unscaled_features,
)
from kfu.errors import SettingsError
from kfu.kernels import ALIASES as KERNEL_ALIASES
from kfu.kernels import KERNELS, KernelSpec, psd_report, suggest_gamma
from kfu.paths.path_file import PathFile, is_table, keys_of, read_path_file
from kfu.report import figure, print_facts, print_table, write_json

SAMPLE_ROWS = 500
SHOWN_CLASSES = 30


class InfoCommand(click.Command):
    """Takes ``--kernel NAME`` too, which 'kfu train' has taught: it means ``--kernel -k NAME``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        rewritten: list[str] = []
        for position, word in enumerate(args):
            if word.startswith("--kernel="):
                rewritten += ["--kernel", "-k", word.removeprefix("--kernel=")]
                continue
            if position and args[position - 1] == "--kernel" and is_kernel(word):
                rewritten.append("-k")
            rewritten.append(word)
        return super().parse_args(ctx, rewritten)


def is_kernel(word: str) -> bool:
    is_name = word.lower() in {*KERNELS, *KERNEL_ALIASES}
    return is_name or word.lower().endswith((".yaml", ".yml"))


@click.command(
    cls=InfoCommand,
    epilog="""\b
Examples:
  kfu info heart.svm
  kfu info heart.svm -k sigmoid -g 0.1    # is this kernel positive semidefinite here?
  kfu info heart.kfu --json
""",
)
@click.argument("path", metavar="FILE")
@click.option(
    "--kernel",
    "with_kernel",
    is_flag=True,
    help="Also examine the kernel (-k, -g ...) on a sample of the rows: whether it is positive "
    "semidefinite, and its rank and condition. Naming a kernel or a parameter asks for it too.",
)
@click.option(
    "-k",
    "kernel",
    type=options.KERNEL_TYPE,
    default=None,
    help="Kernel to examine; see 'kfu train --help'.  [default: rbf]",
)
@options.kernel_file
@options.gamma
@options.sigma
@options.degree
@options.coef0
@click.option(
    "--sample",
    type=options.POSITIVE_COUNT,
    default=SAMPLE_ROWS,
    show_default=True,
    help="Rows in the sample of --kernel.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.data_options
@options.threads
@options.seed
@options.verbose
@options.quiet
def info(path: str, with_kernel: bool, as_json: bool, seed: int, **opts: Any) -> None:
    """Describe a data file, a model or a path.

    FILE is recognised by its content: data in any format that train reads ('-' is stdin), a
    model of kfu, a model of LIBSVM, or a path file.
    """
    with_kernel = with_kernel or any(opts[name] is not None for name in inputs.KERNEL_NAMES)
    kind = kind_of(path)
    if kind != "data":
        if with_kernel:
            raise SettingsError(
                f"{path} is a {'path' if kind == 'path' else 'model'}; --kernel, -k, -g ... "
                "examine a kernel on data; leave them out"
            )
        if kind == "path":
            describe_path(path, as_json)
            return
        describe_model(path, kind, as_json)
        return
    spec = inputs.kernel_of(opts)
    precomputed = with_kernel and spec.is_precomputed
    dataset = inputs.read_data(path, opts, precomputed=precomputed)
    check_width(dataset.X, dataset.source)
    content = describe_data(dataset, seed)
    if with_kernel:
        resolved = spec.resolve(dataset.X)
        resolved.check_data(dataset.X, source=dataset.source)
        content["kernel"] = psd_report(dataset.X, resolved, opts["sample"], seed)
    if as_json:
        write_json("-", content)
    else:
        print_data(content)


# ---- models ---------------------------------------------------------------------------------


def describe_path(path: str, as_json: bool) -> None:
    """What the file of a path says of it; its rows are not looked for."""
    with console.library_warnings():
        found = read_path_file(path)
    names = keys_of(found.header)
    kernel = KernelSpec.from_dict(found.header["kernel"])
    ends = found.records[0], found.records[-1]
    content = {
        "file": path,
        "kind": "path",
        **found.header,
        "kernel": kernel.describe(),
        "finished": found.is_finished,
        "steps": len(found.records) - 1,
        "events": sum(len(record["items"]) for record in found.records),
        "first": ends[0],
        "last": ends[1],
    }
    if content.pop("embedded", None):
        content["rows_embedded"] = True
    if as_json:
        write_json("-", content)
        return
    facts: list[tuple[str, Any]] = [
        ("file", path),
        ("kind", "path of kfu"),
        ("status", path_state(found)),
        ("machine", f"{content['machine']} in {content['parameter']}"),
        ("kernel", content["kernel"]),
        ("rows", f"{content['n']}, {content['n_features']} features"),
        ("data", "in the file" if "rows_embedded" in content else content["data"]["file"]),
        ("steps", f"{content['steps']} ({content['events']} events)")
        if not is_table(found.header)
        else ("solutions", len(found.records)),
    ]
    for name in names[1 : names.index("event")]:
        facts.append((name, f"{figure(ends[0][name])} to {figure(ends[1][name])}"))
    for name in ("n_margin", "n_error", "n_correct", "train_error", "valid_error"):
        facts.append((f"last {name}".replace("_", " "), ends[1][name]))
    print_facts(facts)


def path_state(found: PathFile) -> str:
    if is_table(found.header):
        status = str(found.header.get("status", "done"))
        return "complete" if status == "done" else status
    return "complete" if found.is_finished else "unfinished (kfu path --resume goes on)"


def describe_model(path: str, kind: str, as_json: bool) -> None:
    model = load_any_model(path)
    content = {"file": path, "kind": kind, **model.describe()}
    content["classes"] = [format_label(value) for value in model.classes]
    if as_json:
        write_json("-", content)
        return
    trained = content["info"]
    stored = ", ".join(word for word in (content["layout"], content["values"]) if word)
    facts = [
        ("file", path),
        ("kind", "kfu model" if kind == "model" else "LIBSVM model"),
        ("status", content["status"] or "not recorded"),
        ("machine", content["machine"]),
        ("kernel", content["kernel"]),
        ("scaling", content["scaler"] or "none"),
        ("features", content["n_features"]),
        ("support vectors", f"{content['n_sv']} ({stored})"),
        ("binary machines", content["n_machines"]),
        ("bias", content["bias"]),
    ]
    names = ("cost", "C"), ("tolerance", "tolerance"), ("solver", "solver")
    facts += [(text, content["settings"][key]) for key, text in names if key in content["settings"]]
    names = ("n", "training rows"), ("objective", "objective"), ("duality_gap", "duality gap")
    facts += [(text, trained[key]) for key, text in names if trained.get(key) is not None]
    facts += [("warning", message) for message in trained.get("warnings") or []]
    print_facts(facts)
    pairs = list(zip(content["classes"], content["n_support"], strict=True))[:SHOWN_CLASSES]
    if pairs:
        print_table(["class", "support vectors"], [[label, str(count)] for label, count in pairs])


# ---- data -----------------------------------------------------------------------------------


def describe_data(dataset: Dataset, seed: int) -> dict[str, Any]:
    X, y = dataset.X, dataset.y
    ranges = FeatureRanges.of(X)
    duplicates = Duplicates.of(X, y)
    n_nonzero = int(X.count_nonzero() if sp.issparse(X) else np.count_nonzero(X))
    ratio, widest, narrowest = ranges.ratio()
    return {
        "file": dataset.source,
        "kind": "data",
        "n": dataset.n,
        "n_features": dataset.n_features,
        "layout": "sparse" if dataset.is_sparse else "dense",
        "zero_based": dataset.zero_based,
        "n_nonzero": n_nonzero,
        "density": n_nonzero / max(1, dataset.n * dataset.n_features),
        "label_type": label_type(y),
        "classes": classes_of(y),
        "n_labels": None if y is None else len(np.unique(y)),
        "n_queries": None if dataset.qid is None else len(np.unique(dataset.qid)),
        "weights": None
        if dataset.weights is None
        else {"min": dataset.weights.min(), "max": dataset.weights.max()},
        "minimum": ranges.low.min(initial=np.inf),
        "maximum": ranges.high.max(initial=-np.inf),
        "narrowest_range": {"feature": narrowest + 1, "range": ranges.span[narrowest]},
        "widest_range": {"feature": widest + 1, "range": ranges.span[widest]},
        "range_ratio": ratio,
        "constant_features": (ranges.constant + 1).tolist(),
        "duplicate_rows": duplicates.n_repeated,
        "contradictory_rows": duplicates.n_contradictory,
        "suggested_gamma": {
            "median": suggest_gamma(X, seed=seed),
            "scale": KernelSpec.make("rbf", gamma="scale").resolve(X).params["gamma"],
            "auto": KernelSpec.make("rbf", gamma="auto").resolve(X).params["gamma"],
        },
        "warnings": constant_features(ranges)
        + unscaled_features(ranges)
        + contradictory_rows(duplicates),
    }


def label_type(y: np.ndarray | None) -> str:
    if y is None:
        return "none"
    if y.dtype.kind not in "fiu":
        return "text"
    return "integer" if np.all(y == np.floor(y)) else "real"


def classes_of(y: np.ndarray | None) -> list[dict[str, Any]] | None:
    """Label and count of each class, or None when the labels look like a regression target."""
    if y is None or looks_like_regression(y):
        return None
    values, counts = np.unique(y, return_counts=True)
    return [
        {"label": format_label(value), "n": int(count)}
        for value, count in zip(values, counts, strict=True)
    ]


def print_data(content: dict[str, Any]) -> None:
    gamma = content["suggested_gamma"]
    facts: list[tuple[str, Any]] = [
        ("file", content["file"]),
        ("rows", content["n"]),
        ("features", content["n_features"]),
        ("layout", f"{content['layout']}, {100 * content['density']:.4g}% nonzero"),
        ("feature numbers", f"from {0 if content['zero_based'] else 1}"),
        ("labels", f"{content['label_type']}, {figure(content['n_labels'])} different"),
    ]
    if content["n_queries"] is not None:
        facts.append(("queries (qid)", content["n_queries"]))
    if content["weights"] is not None:
        weights = content["weights"]
        facts.append(("weights", f"{figure(weights['min'])} to {figure(weights['max'])}"))
    narrow, wide = content["narrowest_range"], content["widest_range"]
    facts.append(("values", f"{figure(content['minimum'])} to {figure(content['maximum'])}"))
    if wide["feature"] > 0:
        facts.append(
            (
                "feature ranges",
                f"{figure(narrow['range'])} (feature {narrow['feature']}) to "
                f"{figure(wide['range'])} (feature {wide['feature']})",
            )
        )
    facts += [
        ("constant features", len(content["constant_features"])),
        ("duplicate rows", content["duplicate_rows"]),
        ("contradictory rows", content["contradictory_rows"]),
        (
            "suggested gamma",
            f"{figure(gamma['median'])} (median), {figure(gamma['scale'])} (scale), "
            f"{figure(gamma['auto'])} (auto)",
        ),
    ]
    print_facts(facts)
    if content["classes"] is not None:
        shown = content["classes"][:SHOWN_CLASSES]
        rows = [
            [entry["label"], str(entry["n"]), f"{100 * entry['n'] / content['n']:.2f}%"]
            for entry in shown
        ]
        print_table(["class", "rows", "share"], rows)
        if len(content["classes"]) > len(shown):
            click.echo(f"... and {len(content['classes']) - len(shown)} classes more")
    if "kernel" in content:
        print_facts(
            [(key.replace("_", " "), value) for key, value in content["kernel"].items()],
            title="kernel on a sample",
        )
    for message in content["warnings"]:
        console.warn(message)
