"""The environments under the module name of "Batching Improvements for Faster Training"."""

from groundswell.experiments.query_mutation import BatchedQueryMutationEnv, QueryMutationEnv

__all__ = ["BatchedQueryMutationEnv", "QueryMutationEnv"]
