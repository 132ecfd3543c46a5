"""Statistics: pure functions of counts, with the papers that they follow."""
