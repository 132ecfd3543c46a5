// Runs that are selected in the list of runs stay selected while its rows change. Two or more can be compared.
"use strict";
(() => {
  const { all, one } = window.groundswell, MOST = 8;
  const selected = new Set();

  const show = () => {
    const link = one("#compare-selected");
    link.hidden = selected.size < 2;
    const many = selected.size > MOST;
    link.textContent = many ? `Select at most ${MOST} runs to compare` : `Compare ${selected.size} runs`;
    if (many) link.removeAttribute("href");
    else link.href = `/compare?${new URLSearchParams([...selected].map((id) => ["run", id]))}`;
  };

  const restore = () => {
    for (const box of all("input[data-select]")) box.checked = selected.has(box.value);
    show();
  };

  document.addEventListener("change", (event) => {
    if (!event.target.matches("input[data-select]")) return;
    if (event.target.checked) selected.add(event.target.value);
    else selected.delete(event.target.value);
    show();
  });
  document.addEventListener("partchange", restore);
  // A browser may restore the boxes when the user comes back.
  for (const box of all("input[data-select]:checked")) selected.add(box.value);
  restore();
})();
