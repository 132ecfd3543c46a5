"""How runs, outcomes and transcripts look to people, as text and as HTML. Pure: it is given what it shows."""
