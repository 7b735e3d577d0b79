#!/bin/sh
# The demo of `make demo`: scale, train, predict, report and picture of a two-dimensional toy.
#     sh configs/demo.sh [FOLDER]        (FOLDER is relative to the checkout)
# Every command is printed before it runs, ready to be tried again with other options.
set -eu
cd "$(dirname "$0")/.."
out=${1:-demo-output}
mkdir -p "$out"

say() { printf '\n%s\n' "$@"; }
show() {
  printf '\n  $ %s\n\n' "$*"
  "$@"
}

say "1. Scale the features to [-1, 1]; the range is learned on the training rows and kept."
show kfu scale datasets/banana-train.svm --method minmax --save "$out/range.json" -o "$out/train.svm"
show kfu scale datasets/banana-test.svm --apply "$out/range.json" -o "$out/test.svm"

say "2. Train a support vector machine with a Gaussian kernel. The answer carries its certificate:
   duality gap and worst violation of the optimality conditions, computed from scratch."
show kfu train "$out/train.svm" -k rbf -g 4 -c 1 -o "$out/banana.kfu" --report "$out/train.json"

say "3. Predict rows it has never seen."
show kfu predict "$out/banana.kfu" "$out/test.svm" -o "$out/predictions.txt" \
  --report "$out/predict.json"

say "4. Draw the decision function."
show kfu plot "$out/banana.kfu" "$out/train.svm" -o "$out/banana.png"

say "5. The same as a described experiment, together with what is expected of it."
show kfu run configs/demo.yaml -o "$out/run"

say "Done. The model, predictions, reports and the picture are in $out/:"
ls -1 "$out"
say "Look at $out/banana.png. To go on: . .venv/bin/activate, kfu --help, docs/tutorial.md."
