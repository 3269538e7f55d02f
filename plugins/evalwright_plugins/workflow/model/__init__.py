"""The files that users write: a workflow, and the configuration of a run."""
