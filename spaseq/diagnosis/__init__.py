"""The reason why a query has no answers: the step at which events lead to none."""
