#!/bin/sh
# Four agents in turn repair a program, and a human decides. At a terminal you are asked; in a pipe this script says yes.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
demo="$here/../demo/workflow"
rm -rf "$demo"
mkdir -p "$demo"
cd "$demo"
cp -R "$here/workflow/project" project
cp -R "$here/workflow/agents" agents
cp "$here/quixbugs/agent.py" agents/agent.py
cp "$here/workflow/work.yaml" work.yaml
PATH="$demo/agents:$PATH"
PYTHONDONTWRITEBYTECODE=1
export PATH PYTHONDONTWRITEBYTECODE

cd project
git init --quiet
git add --all
git -c user.name=demo -c user.email=demo@example.org commit --quiet --message "A program with a defect"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }

work() {
  code=0
  evalwright work "$@" --format text || code=$?
}

follow() {
  until [ -s .git/evalwright/runs/bucketsort-1/ledger.jsonl ]; do sleep 0.1; done
  exec evalwright work events bucketsort-1 --follow --format text
}

say "A repository with a defect. Builder, verifier, reviewer and fixer work on it in turn, in a worktree of their own."
follow &
follower=$!
work start --config ../work.yaml
if [ -s .git/evalwright/runs/bucketsort-1/ledger.jsonl ]; then wait "$follower" || true; else kill "$follower"; fi
while [ "$code" = 10 ] && ! { [ -t 0 ] && [ -t 1 ]; }; do
  say "The run waits for a human, and this process has ended. Another one says yes:"
  work approve bucketsort-1 --by demo --reason "it is a demo"
done
result=$code
say "What the reviewer found, and what became of it"
work findings list bucketsort-1
say "What happened, event by event"
work events bucketsort-1
say "Where it stands, and that nobody has changed the record"
work status bucketsort-1
work verify bucketsort-1
say "The change that the agents have made; your branch is as it was"
git --no-pager log --oneline --graph --all
git --no-pager diff --stat HEAD run/bucketsort-1

cat <<NEXT

What next? In demo/workflow/project (with $(dirname "$(command -v evalwright)") on your PATH):
  git diff HEAD run/bucketsort-1               what the agents have done; merge it, or delete the branch
  evalwright work status bucketsort-1          where the run stands and what leads on, if you left it waiting
  less ../work.yaml ../agents/reviewer.py      the whole configuration, and an agent
  less ../../../docs/explanation/workflows.md  what a workflow is, and how it becomes an arm of a suite
NEXT
exit "$result"
