"""The batch functions under the module name of "Batching Improvements for Faster Training"."""

from groundswell.experiments.query_mutation import batch_encode_queries, batch_mutate_queries, batch_query_target_model

__all__ = ["batch_encode_queries", "batch_mutate_queries", "batch_query_target_model"]
