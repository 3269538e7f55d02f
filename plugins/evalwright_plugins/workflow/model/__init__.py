"""What users write: workflows, their policies, and the configuration of a run."""
