// One trial: texts that are loaded on demand, and the form that forks its run. Texts are only ever set as text.
"use strict";
(() => {
  const { all, call, one } = window.groundswell;

  const read = async (address) => {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(`The server answered ${answer.status}.`);
    return answer.text();
  };

  const load = (details) => {
    const place = one("pre", details);
    place.dataset.own = "";
    read(details.dataset.load).then((text) => { place.textContent = text; }, (error) => {
      place.textContent = `This could not be loaded: ${error.message}`;
    });
  };
  document.addEventListener("toggle", (event) => { if (event.target.matches("details[data-load][open]")) load(event.target); }, true);

  document.addEventListener("partchange", (event) => all("details[data-load][open]", event.detail).forEach(load)); // a reply has come

  const showRest = async (button) => {
    const place = button.parentElement;
    button.disabled = true;
    try {
      place.textContent = await read(button.dataset.rest);
      place.dataset.own = "";
    } catch (error) {
      button.disabled = false;
      window.groundswell.say(error.message, true);
    }
  };

  const dialog = one("#fork");
  const openFork = (position) => {
    one("[name=at]", dialog).value = position;
    one("[role=alert]", dialog).hidden = true;
    dialog.showModal();
  };

  // A value is JSON, else text, as on the command line.
  const parsed = (text) => {
    try { return JSON.parse(text); } catch { return text; }
  };

  const fork = async (form) => {
    const wrong = one("[role=alert]", form), button = one("button.primary", form);
    const set = {};
    for (const row of all(".change", form)) {
      const field = one("[name=field]", row).value.trim();
      if (field) set[field] = parsed(one("[name=value]", row).value);
    }
    const body = { set };
    const at = one("[name=at]", form).value, name = one("[name=name]", form).value.trim();
    if (at !== "") body.at = Number(at);
    if (name) body.name = name;
    button.disabled = true;
    wrong.hidden = true;
    try {
      const made = await call("POST", form.dataset.forkForm, body);
      location.assign(`/runs/${encodeURIComponent(made.run_id)}/trials`);
    } catch (error) {
      const fields = (error.fields || []).map((each) => `${each.field}: ${each.message}`).filter((each) => !error.message.includes(each));
      wrong.textContent = [error.message, ...fields].join(" ");
      wrong.hidden = false;
    } finally {
      button.disabled = false;
    }
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.rest) showRest(button);
    else if (button.dataset.fork !== undefined && dialog) openFork(button.dataset.fork);
    else if ("close" in button.dataset) dialog.close();
    else if ("addChange" in button.dataset) {
      const rows = one(".changes", dialog), row = one(".change", rows).cloneNode(true);
      all("input", row).forEach((input) => { input.value = ""; input.placeholder = ""; });
      rows.append(row);
      one("input", row).focus();
    }
  });
  dialog?.addEventListener("submit", (event) => {
    event.preventDefault();
    fork(event.target);
  });
  // The current value of a field is shown where the new one is written.
  dialog?.addEventListener("input", (event) => {
    if (event.target.name !== "field") return;
    const known = all("#fields option").find((each) => each.value === event.target.value);
    one("[name=value]", event.target.closest(".change")).placeholder = known ? `now ${known.label}` : "";
  });
})();
