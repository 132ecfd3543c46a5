"""Does a text give a secret away? A ladder of detectors: exact, normalised, encoded. Pure functions, no files.

What counts, tier by tier (`ladder.detect` reports an occurrence once, at the lowest tier that has it):

* **exact**: the secret as given, case and all, as whole words.
* **normalised**: NFKC and case folded; accents, invisible characters, punctuation and markdown around and inside it
  aside; still whole words. A plural in -s, -es or -ies and a possessive count (`inflected`), other endings do not, and
  a secret inside another word never does. Hyphens and markdown may stand inside a word (`lan-tern`, `lan**tern**`);
  spaces, apostrophes and dashes may not, since "we'll" is not "well". Between the words of a longer secret anything
  without letters and digits may stand, up to four characters. Letters of other alphabets that look the same are the
  same (`lookalike`).
* **encoded**: disguises that take some work to read, each with its own module and its own least length.

A whole word is one that no letter or digit touches. Scripts that put no spaces between words have no such borders:
there any place will do. Letters and digits are all that is compared. A secret without any is looked for exactly alone;
one with one or two of them exactly and normalised alone, as nothing else could be told from chance; an empty one is
never found.
"""
