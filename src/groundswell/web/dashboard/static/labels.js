// Labels the messages of one conversation with keys or buttons. Messages appear one after the other, as to a listener.
"use strict";
(() => {
  const { all, call, one, say } = window.groundswell;
  const box = one("#labelling"), saved = one("#saved");
  const asked = box.dataset.asked.split(" ").filter(Boolean).map(Number);
  const messages = all(".message", box);
  const given = new Map();
  for (const each of messages) {
    if (each.dataset.label) given.set(Number(each.dataset.place), { label: each.dataset.label, unsure: each.dataset.unsure === "yes" });
  }

  const current = () => asked.find((place) => !given.has(place));
  const last = () => asked.filter((place) => given.has(place)).pop();

  const show = () => {
    const now = current(), end = now ?? messages.length - 1;
    for (const each of messages) {
      const place = Number(each.dataset.place), said = given.get(place), chip = one(".given", each);
      each.hidden = place > end;
      each.classList.toggle("current", place === now);
      if (place === now) each.setAttribute("aria-current", "true");
      else each.removeAttribute("aria-current");
      chip.hidden = !said;
      chip.textContent = said ? said.label + (said.unsure ? ", unsure" : "") : "";
    }
    one(".choices", box).hidden = now === undefined;
    one(".finished", box).hidden = now !== undefined;
    const at = now === undefined ? one(".finished", box) : one(".choices", box);
    at.scrollIntoView({ block: "nearest" });
  };

  // Saves are sent one after the other, each with all labels of the conversation.
  let saving = Promise.resolve();
  const save = () => {
    const body = { reader: box.dataset.reader, labels: Object.fromEntries(given) };
    saved.textContent = "Saving…";
    return saving = saving.then(() => call("PUT", box.dataset.put, body)).then((item) => {
      saved.textContent = "Saved.";
      one("#done").textContent = item.done;
      return true;
    }).catch((error) => {
      saved.textContent = "Not saved.";
      say(error.message, true);
      return false;
    });
  };

  const go = async (address) => {
    if (!address) return;
    if ((await saving) === false && (await save()) === false) return;
    location.assign(address);
  };

  const label = (name) => {
    const place = current();
    if (place === undefined) return;
    given.set(place, { label: name, unsure: false });
    show();
    save();
  };

  const acts = {
    next: () => go(box.dataset.next),
    undo: () => {
      if (last() === undefined) return go(box.dataset.before);
      given.delete(last());
      show();
      save();
    },
    unsure: () => {
      if (last() === undefined) return say("There is no label yet.");
      given.get(last()).unsure = true;
      show();
      save();
    },
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-choice], [data-do]");
    if (!button) return;
    button.blur();
    if (button.dataset.choice) label(button.dataset.choice);
    else acts[button.dataset.do]();
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest("input, textarea, select, dialog")) return;
    if (event.key === "Enter" && event.target.closest("a, button, summary")) return;
    const wanted = all("[data-press]").find((each) => each.dataset.press === event.key && each.offsetParent !== null);
    if (!wanted) return;
    event.preventDefault();
    wanted.click();
  });

  show();
})();
