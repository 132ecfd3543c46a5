// Parts of a page that change while it is open, buttons that call the API, and the theme.
// Parts arrive as HTML that the server has escaped. Texts from the API are only ever set as text.
"use strict";
(() => {
  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Change an element into a new version of itself. What has not changed is not touched: it keeps the focus, and clicks
  // reach it. Users open and close details, and elements with data-own belong to a script.
  const morph = (old, made) => {
    if (old.nodeType !== Node.ELEMENT_NODE) {
      if (old.nodeValue !== made.nodeValue) old.nodeValue = made.nodeValue;
      return;
    }
    if (old.isEqualNode(made) || "own" in old.dataset) return;
    if (old.nodeName === "SELECT") {
      old.replaceWith(made); // its selection belongs to its options
      return;
    }
    const mine = (name) => name === "open" && old.nodeName === "DETAILS";
    for (const { name } of [...old.attributes]) if (!made.hasAttribute(name) && !mine(name)) old.removeAttribute(name);
    for (const { name, value } of made.attributes) if (old.getAttribute(name) !== value && !mine(name)) old.setAttribute(name, value);
    replaceChildren(old, made);
  };

  // Children with an id are matched by it, others with their neighbours.
  const replaceChildren = (old, made) => {
    const named = new Map([...old.children].filter((each) => each.id).map((each) => [each.id, each]));
    let at = old.firstChild;
    for (const wanted of [...made.childNodes]) {
      const same = wanted.id ? named.get(wanted.id) : at && !at.id && at.nodeName === wanted.nodeName && at;
      if (!same || same.nodeName !== wanted.nodeName) old.insertBefore(wanted, at);
      else {
        if (same === at) at = at.nextSibling;
        else old.insertBefore(same, at);
        morph(same, wanted);
      }
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  const replace = (old, made) => {
    const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
    replaceChildren(old, made);
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus();
    document.dispatchEvent(new CustomEvent("partchange", { detail: old }));
  };

  const parsed = (html) => one("template", new DOMParser().parseFromString(`<template>${html}</template>`, "text/html")).content;

  // Server-sent events: `parts` replaces elements by id, `end` says that nothing more will change. A page that is not
  // visible has no stream, because browsers allow only six connections to a server.
  const lost = one(".disconnected");
  const complain = (text) => {
    lost.textContent = text;
    lost.hidden = false;
  };
  let stream = null;
  const follow = () => {
    stream?.close();
    stream = null;
    const address = document.body.dataset.stream;
    if (!address || document.hidden) return;
    stream = new EventSource(address);
    stream.addEventListener("open", () => { lost.hidden = true; });
    stream.addEventListener("error", () => {
      const over = stream.readyState === EventSource.CLOSED;
      complain(over ? "Live updates have stopped. Reload the page." : "The connection to the server is lost. Trying again…");
    });
    stream.addEventListener("parts", (event) => {
      lost.hidden = true;
      for (const [id, html] of Object.entries(JSON.parse(event.data))) {
        const old = document.getElementById(id);
        if (old) replace(old, parsed(html));
      }
    });
    stream.addEventListener("end", (event) => {
      stream.close();
      document.body.dataset.stream = "";
      const { status, message } = JSON.parse(event.data);
      if (status === "deleted") complain("This run has been deleted.");
      if (status === "error") complain(`Live updates have stopped: ${message}. Reload the page.`);
    });
  };
  document.addEventListener("visibilitychange", follow);

  // Open the address of a form without reloading: only the elements marked as parts are replaced.
  let visits = 0;
  const visit = async (address) => {
    const mine = (visits += 1);
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== visits) return; // a later one is on its way
    if (answer.redirected) return location.assign(address); // the session has ended: to the login
    if (!answer.ok) throw new Error(one("main p", page)?.textContent || `The server answered ${answer.status}.`);
    for (const old of all("[data-part]")) {
      const made = page.getElementById(old.id);
      if (made) replace(old, made);
    }
    document.body.dataset.stream = page.body.dataset.stream || "";
    history.replaceState(null, "", address);
    follow();
  };

  const say = (text, wrong = false) => {
    const toast = document.createElement("p");
    toast.className = wrong ? "toast wrong" : "toast";
    toast.textContent = text;
    one(".toasts").append(toast);
    setTimeout(() => toast.remove(), wrong ? 12000 : 5000);
  };

  const confirmed = (button) => new Promise((resolve) => {
    const dialog = one("dialog.confirm"), { confirm, yes, no } = button.dataset;
    one("p", dialog).textContent = confirm;
    one("[value=yes]", dialog).textContent = yes || button.textContent.trim();
    one("[value=no]", dialog).textContent = no || "Go back";
    dialog.returnValue = "no";
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
    dialog.showModal();
  });

  // Call the API: the data of the response, or an Error with its message and the errors of fields.
  const call = async (method, address, body, type = "application/json") => {
    const options = { method, headers: { Accept: "application/json" } };
    if (body !== undefined) {
      options.headers["Content-Type"] = type;
      options.body = typeof body === "string" ? body : JSON.stringify(body);
    }
    let answer;
    try {
      answer = await fetch(address, options);
    } catch {
      throw new Error("The server does not answer. Is it still running?");
    }
    const found = await answer.json().catch(() => ({}));
    if (!answer.ok) throw Object.assign(new Error(found.message || `The server answered ${answer.status}.`), { fields: found.errors || [] });
    return found.data;
  };

  // <button data-call="POST /api/runs/ID/cancel" data-body='{}' data-confirm="Cancel?" data-then="reload, or an address">
  const act = async (button) => {
    if (button.dataset.confirm && !(await confirmed(button))) return;
    const [method, address] = button.dataset.call.split(" ");
    button.disabled = true;
    button.dataset.own = "";
    try {
      const data = await call(method, address, button.dataset.body);
      if (button.dataset.then === "reload") location.reload();
      else if (button.dataset.then) location.assign(button.dataset.then.replace("{id}", encodeURIComponent(data?.run_id || data?.id || "")));
      else say(data?.message || "Done.");
      if (button.dataset.show && data) {
        const field = one(button.dataset.show);
        field.value = new URL(data.path, location.href).href;
        field.closest("[hidden]")?.removeAttribute("hidden");
        field.select();
      }
    } catch (error) {
      say(error.message, true);
    } finally {
      button.disabled = false;
      delete button.dataset.own;
    }
  };

  const copy = async (button) => {
    const from = one(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.value ?? from.textContent);
      say("Copied.");
    } catch {
      getSelection().selectAllChildren(from);
      say("Press Ctrl+C to copy.");
    }
  };

  const toggle = () => {
    const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    document.cookie = `theme=${next}; path=/; max-age=31536000; samesite=lax`;
    document.dispatchEvent(new CustomEvent("themechange"));
  };

  const closeMenus = (inside) => all("details.menu[open]").filter((each) => !each.contains(inside)).map((each) => {
    each.open = false;
    return each;
  });

  document.addEventListener("click", (event) => {
    closeMenus(event.target);
    const button = event.target.closest("button, [data-copy]");
    if (!button) return;
    if (button.dataset.call) act(button);
    else if (button.dataset.copy) copy(button);
    else if ("themeToggle" in button.dataset) toggle();
  });

  // A form with data-auto applies itself while its user types.
  let wait = 0;
  const applied = (form) => {
    const values = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
    visit(`${form.action.split("?")[0]}${values.size ? "?" : ""}${values}`).catch((error) => say(error.message, true));
  };
  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-auto]");
    if (!form) return;
    clearTimeout(wait);
    wait = setTimeout(() => applied(form), event.target.type === "search" ? 200 : 0);
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-auto]")) return;
    event.preventDefault();
    applied(event.target);
  });

  // Keys: / searches, and elements with data-key are followed with their key.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeMenus(null).forEach((each) => one("summary", each).focus());
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const wanted = event.key === "/" ? one("input[type=search]") : one(`[data-key="${CSS.escape(event.key)}"]`);
    if (!wanted) return;
    event.preventDefault();
    if (event.key === "/") wanted.focus();
    else wanted.click();
  });

  window.groundswell = { all, call, one, say };
  follow();
})();
