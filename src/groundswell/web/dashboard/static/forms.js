// Forms that send JSON to the API: <form data-send="POST /api/..." data-then="reload, or an address">.
// The name of a field is its path in the body. data-as says how to read it: json or boolean.
"use strict";
(() => {
  const { all, call, one, say } = window.groundswell;

  const value = (field) => {
    const text = field.value;
    if (field.type === "checkbox") return field.checked;
    if (text === "") return undefined;
    if (field.type === "number") return Number(text);
    if (field.dataset.as === "boolean") return text === "true";
    if (field.dataset.as === "json") return JSON.parse(text);
    return text;
  };

  // Names are not split at dots: an attribute may contain one. Only the prefix "attributes." makes an inner object.
  const body = (form) => {
    const found = {};
    for (const field of all("[name]", form)) {
      let said;
      try {
        said = value(field);
      } catch (error) {
        throw Object.assign(new Error("This is not valid JSON."), { fields: [{ field: field.name, message: error.message }] });
      }
      if (said === undefined) continue;
      const inner = field.name.startsWith("attributes.");
      if (inner) (found.attributes ||= {})[field.name.slice(11)] = said;
      else if (field.name === "*") Object.assign(found, said);
      else if (field.name === "attributes" && typeof said === "object" && !Array.isArray(said)) found.attributes = { ...said, ...found.attributes };
      else found[field.name] = said;
    }
    return found;
  };

  const wrong = (form, error) => {
    const fields = error.fields || [];
    const left = fields.filter(({ field, message }) => {
      const input = all("[name]", form).find((each) => each.name === field);
      if (!input) return true;
      const note = document.createElement("span");
      note.className = "wrong field-error";
      note.id = `wrong-${Math.random().toString(36).slice(2)}`;
      note.textContent = message;
      input.setAttribute("aria-invalid", "true");
      input.setAttribute("aria-describedby", note.id);
      input.closest("label").append(note);
      return false;
    });
    const list = one(".errors", form);
    if (list && (left.length || !fields.length)) {
      const told = left.length ? left.map(({ field, message }) => `${field}: ${message}`) : error.message.split("\n");
      list.replaceChildren(...told.map((text) => Object.assign(document.createElement("li"), { textContent: text.trim() })));
      list.hidden = false;
      list.scrollIntoView({ block: "nearest" });
    } else if (left.length || !fields.length) say(error.message, true);
    one("[aria-invalid]", form)?.focus();
  };

  const clean = (form) => {
    for (const each of all(".field-error", form)) each.remove();
    for (const each of all("[aria-invalid]", form)) each.removeAttribute("aria-invalid");
    const list = one(".errors", form);
    if (list) list.hidden = true;
  };

  const sent = async (form) => {
    const [method, address] = form.dataset.send.split(" ");
    const data = await call(method, address, body(form));
    if (form.dataset.then === "reload") location.reload();
    else location.assign(form.dataset.then.replace("{id}", encodeURIComponent(data?.run_id || data?.id || "")));
  };

  // A file goes as it is, since a table is not JSON: <form data-import="/api/...">.
  const imported = async (form) => {
    const file = one("input[type=file]", form).files[0];
    const text = file ? await file.text() : one("textarea", form).value;
    const table = file ? /\.csv$/i.test(file.name) : !/^\s*[[{]/.test(text);
    const address = `${form.dataset.import}?on_conflict=${encodeURIComponent(one("[name=on_conflict]", form).value)}`;
    const data = await call("POST", address, text, table ? "text/csv" : "application/json");
    const told = Object.entries(data).filter(([, many]) => many).map(([name, many]) => `${name.replaceAll("_", " ")}: ${many}`);
    say(told.length ? `Imported. ${told.join(", ")}.` : "The file has nothing to import.");
    form.reset();
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-send], form[data-import]")) return;
    event.preventDefault();
    clean(form);
    const button = one("button:not([type=button])", form);
    button.disabled = true;
    try {
      await (form.dataset.send ? sent(form) : imported(form));
    } catch (error) {
      wrong(form, error);
    } finally {
      button.disabled = false;
    }
  });
})();
