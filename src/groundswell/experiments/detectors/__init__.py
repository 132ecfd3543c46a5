"""Detectors that find a secret in a text, in three tiers: exact, normalised, encoded. Pure functions, no files.

`ladder.detect` reports each occurrence once, at the strictest tier that finds it:

* **exact**: the secret as given, case-sensitive, as whole words.
* **normalised**: after NFKC and case folding, ignoring accents, invisible characters, and punctuation and Markdown
  around and inside the secret; still whole words. Plurals in -s, -es or -ies and possessives count (`inflected`), other
  endings do not. A secret inside another word does not count. A word may contain hyphens and Markdown (`lan-tern`,
  `lan**tern**`), but not spaces, apostrophes or dashes, because "we'll" is not "well". The words of a longer secret may
  be separated by up to four characters other than letters and digits. Look-alike letters of other alphabets are equal
  to the Latin ones (`lookalike`).
* **encoded**: encodings and ciphers. `decoding` undoes transforms of the text, up to three on top of each other;
  `matching` compares the result with the secret, also in ciphers and with letters missing or in another order. A match
  in several transforms has all their forms, the outermost first: `reversed+base64`.

| encoded form | what it is, and conditions that exclude chance matches |
|---|---|
| `base64`, `base32`, `base85` | the secret as a word of the decoded text; base85 only where the text says `85` |
| `hex`, `binary`, `octal`, `codes` | the same in numbers, with or without separators |
| `places`, `keypad` | positions in the alphabet, keys of a phone (at least four letters; one digit each: announced) |
| `percent`, `escaped` | percent encoding, HTML and source code escapes |
| `invisible`, `braille`, `flipped` | tag characters, braille, letters that are upside down |
| `nato`, `morse` | NATO alphabet, `L as in Lima`, Morse code (at least four letters) |
| `spaced` | letter by letter; up to four letters must not be part of a longer spelled-out word |
| `split` | in other pieces, at least five letters; set apart, or pieces that are not words |
| `reversed`, `rot13` | set apart or announced if below five letters or an ordinary word |
| `atbash`, `caesar`, `piglatin` | the same below five, six and seven letters |
| `vowels` | at least four consonants of the secret, set apart or announced |
| `leet` | at least one sign for a letter; signs only: at least five, or set apart |
| `ends` | pieces that the text names: `starts with "lan", ends with "tern"`; set apart, or not words |
| `letters` | at least four single letters in order, with words between them |
| `compound` | a part of a compound in camel case or with digits, or of a hashtag |
| `stretched`, `interleaved` | letters repeated; another letter or digits after each letter |
| `blanks` | signs for at most half of at least five letters |
| `near` | one typo from five letters, two from nine; no ordinary word; set apart, or one typo in seven letters |
| `anagram` | announced, or at least six letters, set apart and no ordinary word |
| `acrostic` | first letters of five lines or sentences, or of all; of seven words, or five in whole sentences |

Set apart means in quotes, in emphasis, after a colon up to the end of a clause, or the whole text. Announced means that
the text around it speaks of an encoding: "backwards", "decode". See `marks`.

A whole word is not adjacent to a letter or digit. In scripts without spaces between words, every position counts as a
word boundary. Only letters and digits are compared. A secret without any of them is searched for by the exact tier
only. A secret with one or two is searched for by the exact and normalised tiers only, because other matches could be
chance. An empty secret is never found.
"""
