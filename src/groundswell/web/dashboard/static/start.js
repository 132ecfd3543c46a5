// The form that starts a run: reads the inputs, lets the server check them while the user types, shows the estimate.
"use strict";
(() => {
  const { all, call, one } = window.groundswell;
  const form = one("#start"), button = one("button.primary", form), path = form.dataset.path;
  const CHECK_AFTER = 400, ESTIMATE_AFTER = 800;

  // The value of an input, or undefined if it is empty or the default.
  const changed = (value, node) => (JSON.stringify(value) === node.dataset.default ? undefined : value);
  const inside = (node) => all("[data-kind]", node).filter((each) => each.parentElement.closest("[data-kind]") === node);
  const checked = (node) => all("input[type=checkbox]:checked", node).map((each) => each.value);
  const fieldError = (node, problem) => {
    const field = node.closest("[data-field]").dataset.field, message = `${field}: ${problem}`;
    return Object.assign(new Error(message), { fields: [{ field, message }] });
  };
  const readers = {
    switch: (node) => changed(node.checked, node),
    constant: (node) => JSON.parse(node.dataset.value),
    choice: (node) => (node.value === "" ? undefined : changed(JSON.parse(node.value), node)),
    checks: (node) => changed(checked(node).map((each) => JSON.parse(each)), node),
    number: (node) => {
      if (node.validity.badInput) throw fieldError(node, "is not a number");
      return node.value === "" ? undefined : Number(node.value);
    },
    text: (node) => (node.value.trim() === "" ? undefined : node.value.trim()),
    long: (node) => (node.value === "" ? undefined : node.value),
    lines: (node) => {
      const found = node.value.split("\n").map((line) => line.trim()).filter(Boolean);
      const typed = "numbers" in node.dataset ? found.map((each) => (Number.isNaN(Number(each)) ? each : Number(each))) : found;
      return typed.length ? typed : undefined;
    },
    json: (node) => {
      if (node.value.trim() === "") return undefined;
      try {
        return JSON.parse(node.value);
      } catch (error) {
        throw fieldError(node, `is not valid JSON: ${error.message}`);
      }
    },
    group: (node) => {
      const found = inside(node).map((each) => [each.dataset.name, read(each), each.dataset.kind]);
      const given = found.filter(([, value]) => value !== undefined);
      return given.some(([, , kind]) => kind !== "constant") ? Object.fromEntries(given.map(([name, value]) => [name, value])) : undefined;
    },
    rows: (node) => {
      const found = inside(node).map(read).filter((value) => value !== undefined);
      return found.length ? found : undefined;
    },
    either: (node) => {
      const shown = inside(node).find((each) => !each.closest(".alternative").hidden);
      return shown && read(shown);
    },
    entities: (node) => {
      const found = checked(node);
      return found.length ? found : undefined;
    },
  };
  const read = (node) => readers[node.dataset.kind](node);

  const body = () => {
    const found = {};
    for (const field of all("[data-field]", form)) {
      const value = read(one("[data-kind]", field));
      if (value !== undefined) found[field.dataset.field] = value;
    }
    return found;
  };

  const made = (tag, text, attributes = {}) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    return element;
  };

  // Errors: beside their field, and the first one at the top.
  let touched = false;
  const controls = (field) => all("input, select, textarea, fieldset", field);
  const showErrors = (errors, message) => {
    for (const field of all("[data-field]", form)) {
      const error = errors.find((each) => each.field.split(/[.[]/)[0] === field.dataset.field);
      const place = one(`#error-${CSS.escape(field.dataset.field)}`), wrong = Boolean(error) && touched;
      place.textContent = wrong ? error.message : "";
      place.hidden = !wrong;
      const control = controls(field)[0];
      if (wrong) {
        control?.setAttribute("aria-invalid", "true");
        field.closest("details")?.setAttribute("open", "");
      } else {
        control?.removeAttribute("aria-invalid");
      }
    }
    const summary = one("#summary");
    summary.className = message && touched ? "wrong" : "";
    summary.textContent = !message ? "" : touched ? message : `Still to do: ${message}`;
    summary.hidden = !message;
  };

  // Figures of an estimate: ranges, to about the precision that they have.
  const span = ([low, high], shown) => (shown(low) === shown(high) ? shown(low) : `${shown(low)} to ${shown(high)}`);
  const count = (figure) => (figure >= 10000 ? Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }) : Intl.NumberFormat("en", { maximumFractionDigits: 0 })).format(figure);
  const dollars = (usd) => `$${usd.toLocaleString("en", usd >= 0.1 || usd === 0 ? { minimumFractionDigits: 2, maximumFractionDigits: 2 } : { maximumSignificantDigits: 2 })}`;
  const duration = (seconds) => {
    if (seconds < 1) return "under 1 s";
    if (seconds < 100) return `${Math.round(seconds)} s`;
    if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
    return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
  };
  const cost = (range) => (range ? span(range, dollars) : "unknown");
  const sum = (models, name) => models.reduce(([low, high], each) => [low + each[name][0], high + each[name][1]], [0, 0]);

  const estimate = one("#estimate");
  let bill = null, state = "none";
  const showEstimate = (next, text = "") => {
    state = next;
    estimate.dataset.state = next;
    const words = { none: "No estimate yet.", working: "Estimating…", stale: "This estimate is for earlier values.", wrong: text, done: "" }[next];
    const shown = bill && next !== "wrong" ? [figures()] : [];
    const said = words ? [made("p", words, { class: next === "wrong" ? "wrong" : "help" })] : [];
    const notes = next === "done" && bill.assumptions.length ? [assumptions()] : [];
    estimate.replaceChildren(...said, ...shown, ...notes);
    showButton();
  };
  const figures = () => {
    const { live, batch } = bill.ways;
    const rows = [
      ["Trials", span(bill.trials, count)],
      ["Requests", span(sum(bill.models, "calls"), count)],
      ["Tokens in", span(sum(bill.models, "input_tokens"), count)],
      ["Tokens out", span(sum(bill.models, "output_tokens"), count)],
      ["Cost, live", cost(live.usd)],
      ...(batch ? [["Cost, batch", cost(batch.usd)]] : []),
      ["Time, live", span(live.seconds, duration)],
      ...(batch ? [["Time, batch", span(batch.seconds, duration)]] : []),
    ];
    const table = made("table", "", { class: "list" });
    for (const [name, value] of rows) {
      const row = made("tr", "");
      row.append(made("th", name, { scope: "row" }), made("td", value, { class: "n" }));
      table.append(row);
    }
    return table;
  };
  const assumptions = () => {
    const details = made("details", "", { class: "help" }), list = made("ul", "");
    list.append(...bill.assumptions.map((each) => made("li", each)));
    details.append(made("summary", "Assumptions"), list);
    return details;
  };

  // The button shows the price of the way in which the requests are sent.
  let valid = false, starting = false, sentVia = "";
  const showButton = () => {
    button.disabled = !valid || starting;
    const way = state === "done" && ((sentVia === "batch" && bill.ways.batch) || (sentVia === "auto" && bill.ways.mixed) || bill.ways.live);
    const price = way && (!way.usd ? ": price unknown" : way.usd[1] === 0 ? ": no cost" : `: about ${cost(way.usd)}`);
    button.textContent = starting ? "Starting…" : `Start${price || ""}`;
  };

  const showPlan = (found) => {
    const lines = [];
    if (found.trials !== null) lines.push(`${found.trials.toLocaleString("en")} trial${found.trials === 1 ? "" : "s"}.`);
    lines.push(...found.notes);
    if (found.name) lines.push(`The run will be called ${found.name}.`);
    one("#plan").replaceChildren(...lines.map((line) => made("p", line)));
    for (const name of ["command_line", "python", "curl", "config"]) one(`#text-${name}`).textContent = found[name];
  };

  // Checks and estimates: only the newest counts. One estimate runs at a time, and the newest waits for it.
  let newest = 0, wait = 0, waitToEstimate = 0, estimating = false, wanted = null;
  const check = async () => {
    const number = ++newest;
    try {
      const sent = body();
      const found = await call("POST", `${path}/check`, sent);
      if (number !== newest) return;
      sentVia = sent.via || "live";
      valid = found.missing.length === 0;
      showErrors(found.missing, found.missing[0]?.message || "");
      showPlan(found);
      showButton();
      waitToEstimate = setTimeout(() => startEstimate(sent, number), Math.max(0, ESTIMATE_AFTER - CHECK_AFTER));
    } catch (error) {
      if (number !== newest) return;
      valid = false;
      showErrors(error.fields || [], error.message);
      if (state === "working") showEstimate(bill ? "stale" : "none");
      showButton();
    }
  };
  const startEstimate = async (sent, number) => {
    wanted = { sent, number };
    showEstimate("working");
    if (estimating) return;
    estimating = true;
    while (wanted) {
      const now = wanted;
      wanted = null;
      try {
        const found = await call("POST", `${path}/estimate`, now.sent);
        if (now.number === newest) {
          bill = found;
          showEstimate("done");
        }
      } catch (error) {
        if (now.number === newest) showEstimate("wrong", error.message);
      }
    }
    estimating = false;
  };

  const changedNow = () => {
    touched = true;
    valid = false;
    ++newest;
    wanted = null;
    clearTimeout(wait);
    clearTimeout(waitToEstimate);
    one("#refused").hidden = true;
    if (bill) showEstimate("stale");
    else showEstimate("none");
    wait = setTimeout(check, CHECK_AFTER);
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (!valid || starting) return;
    starting = true;
    showButton();
    try {
      const run = await call("POST", path, body());
      location.assign(`/runs/${encodeURIComponent(run.run_id)}`);
    } catch (error) {
      starting = false;
      touched = true;
      if (error.fields?.length) showErrors(error.fields, error.message);
      const refused = one("#refused");
      refused.textContent = error.message;
      refused.hidden = false;
      showButton();
    }
  });

  // The picker of entities.
  const counted = (picker) => {
    const out = one("output", picker);
    if (out) out.textContent = `${checked(picker).length.toLocaleString("en")} selected`;
  };
  const find = (picker, text) => {
    for (const label of all("label.inline", picker)) label.hidden = !label.textContent.toLowerCase().includes(text.toLowerCase().trim());
    for (const group of all("fieldset", picker)) group.hidden = all("label.inline", group).every((label) => label.hidden);
  };
  const selectAll = (picker, on) => {
    for (const label of all("label.inline", picker)) if (!label.hidden || !on) one("input", label).checked = on;
    counted(picker);
  };

  form.addEventListener("input", (event) => {
    if (event.target.matches("[data-find]")) {
      find(event.target.closest(".picker"), event.target.value);
      return;
    }
    if (event.target.matches("[data-choose]")) {
      all(":scope > .alternative", event.target.parentElement).forEach((each, at) => { each.hidden = at !== Number(event.target.value); });
    }
    const picker = event.target.closest(".picker");
    if (picker) counted(picker);
    changedNow();
  });
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input:not([type=checkbox])")) event.preventDefault();
  });
  form.addEventListener("click", (event) => {
    const pressed = event.target.closest("button");
    if (!pressed) return;
    if ("add" in pressed.dataset) {
      const row = one("template", pressed.parentElement).content.cloneNode(true).firstElementChild;
      one(":scope > template", pressed.parentElement).before(row);
      one("input, textarea, select", row)?.focus();
    } else if ("remove" in pressed.dataset) {
      const rows = pressed.closest(".rows");
      pressed.closest(".row").remove();
      one(":scope > [data-add]", rows).focus();
    } else if ("all" in pressed.dataset || "none" in pressed.dataset) {
      selectAll(pressed.closest(".picker"), "all" in pressed.dataset);
    } else if (pressed.dataset.tab) {
      for (const tab of all("[data-tab]")) {
        tab.setAttribute("aria-selected", String(tab === pressed));
        one(`#copy-${tab.dataset.tab}`).hidden = tab !== pressed;
      }
      return;
    } else {
      return;
    }
    changedNow();
  });

  all(".picker", form).forEach(counted);
  if (form.checkValidity()) check(); // otherwise something that is required is not filled in yet
})();
