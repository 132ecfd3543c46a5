"""The given names of the `human` template, by gender, so that sampled people have a name that fits their gender."""

from __future__ import annotations

_WOMEN = (
    "Adaeze Agnieszka Aiko Aino Alejandra Amara Amina Anjali Anneke Aroha Asel Astrid Ayşe Beatriz Bronwyn Camila"
    " Catarina Chiara Chloe Dalia Deepa Desta Dilnoza Edith Efua Eleni Enkhjargal Esperanza Fatima Fiona Francisca"
    " Galina Grace Guadalupe Hana Heilala Hyejin Ileana Imani Ingrid Isabela Ivana Jasmine Jelena Jessica Josefina"
    " Katarzyna Keisha Khadija Latoya Leila Li Linh Maeve Malalai Margit Mariam Marisol Mbali Mei-Ling Mirela"
    " Miriam Nadia Naledi Nandini Natasha Noa Oksana Patience Petra Phoebe Pilar Priya Rania Rosa Sakura Sanna"
    " Selam Shira Siobhan Sofia Soo-ah Sunita Tamar Thandiwe Valentina Wanjiru Xiadani Yara Yelena Yewande Zainab"
    " Zodwa"
)
_MEN = (
    "Ahmad Alhassan Andrej Antonio Arslan Babak Baptiste Bilal Callum Chidi Daiki Darragh Dominik Elijah Emeka"
    " Emre Femi Gabriel Giorgi Gunnar Haruto Hassan Henrik Ibrahim Jabulani Jamal Javier Jerzy Jian Jorge Julien"
    " Kanoa Karthik Kiran Kwabena Lars Lukas Mahmoud Manoj Marek Nikhil Olumide Omar Paolo Pavel Rafael Reza"
    " Ruairi Samuel Sean Somchai Stefan Tadeo Théo Tomasz Tuan Uchenna Viktor Walter Wiremu Yusuf"
)
WOMEN = frozenset([*_WOMEN.split(), "Ana Lucía", "Luz Marina"])
MEN = frozenset(_MEN.split())
GENDERS = {"woman": WOMEN, "female": WOMEN, "man": MEN, "male": MEN}
"""Values of the attribute `gender` and the given names that fit them."""
