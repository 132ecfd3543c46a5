"""The experiments that come with Groundswell: each a package with its programs, its drivers and what they find."""
