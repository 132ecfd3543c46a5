"""What the emulated model can do. Pure: each skill is a function from what was said, and chance, to text."""
