"""The secret game: two agents that each keep a code word and talk in turns, and who gives theirs away."""
