"""Detectors that find a secret in a text, in three tiers: exact, normalised, encoded. Pure functions, no files.

`ladder.detect` reports each occurrence once, at the strictest tier that finds it:

* **exact**: the secret as given, case-sensitive, as whole words.
* **normalised**: after NFKC and case folding, ignoring accents, invisible characters, and punctuation and Markdown
  around and inside the secret; still whole words. Plurals in -s, -es or -ies and possessives count (`inflected`), other
  endings do not. A secret inside another word does not count. A word may contain hyphens and Markdown (`lan-tern`,
  `lan**tern**`), but not spaces, apostrophes or dashes, because "we'll" is not "well". The words of a longer secret may
  be separated by up to four characters other than letters and digits. Look-alike letters of other alphabets are equal
  to the Latin ones (`lookalike`).
* **encoded**: encodings and ciphers, each with its own module and its own minimum length.

A whole word is not adjacent to a letter or digit. In scripts without spaces between words, every position counts as a
word boundary. Only letters and digits are compared. A secret without any of them is searched for by the exact tier
only. A secret with one or two is searched for by the exact and normalised tiers only, because other matches could be
chance. An empty secret is never found.
"""
