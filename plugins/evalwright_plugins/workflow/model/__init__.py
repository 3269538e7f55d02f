<<<<<<< HEAD
"""The files that users write: a workflow, and the configuration of a run."""
=======
"""What users write: workflows, their policies, and the configuration of a run."""
>>>>>>> wip-wfpure
