#!/bin/sh
# The main job, as a user would do it: a real suite, two configurations of a real agent, and the answer which is better.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
demo="$here/../demo"
mkdir -p "$demo/evals/suites"
cd "$demo"
if [ ! -e evals/suites/quixbugs ]; then
  cp -R "$here/quixbugs" evals/suites/quixbugs
fi

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }

say "28 programs, each with one defect. The agent sees the program and a few examples; the tests are hidden from it."
say "Two arms: small may try 20 changes, large 100. Each goes twice over the suite, with other random numbers."
run="repair-$(date -u +%Y%m%d-%H%M%S)"
evalwright run quixbugs --arm small --arm large --repeats 2 --run-id "$run" --format text
say "One trial, hop by hop (bitcount):"
evalwright explain "$run.large.1" bitcount --format text
say "Is large better than small, and may you believe it?"
evalwright compare "$run" --format text

cat <<NEXT

What next? In demo/ (with $(dirname "$(command -v evalwright)") on your PATH):
  evalwright report $run                every arm with its interval, and which programs are flaky
  evalwright run --resume $run --repeats 3      one more pass, paired with the others
  evalwright audit quixbugs             can this suite tell? a no-op agent and the reference solutions over every case
  mkdir mine && cd mine && evalwright init     a small suite to change
  less ../docs/tutorial/first-suite.md  make one of your own
NEXT
