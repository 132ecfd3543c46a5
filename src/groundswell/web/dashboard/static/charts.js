// Replaces the SVG in each <div class="chart" data-chart="URL"> by an interactive chart when it comes near the
// viewport. The URL answers with a Bokeh document as JSON. If anything fails, the SVG stays.
(() => {
  "use strict";

  const ROLES = ["ink", "faint", "grid", "ground", "blue", "red", "green", "pink", "heat"];
  const NARROW = 560; // pixels: below this width, legends have the number of columns in their tag
  const shown = new Map(); // chart element -> {text, box, views}
  let library;

  function loadLibrary() {
    library ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = document.body.dataset.bokeh || "/static/bokeh.js";
      script.onload = () => {
        window.Bokeh.set_log_level("warn");
        resolve(window.Bokeh);
      };
      script.onerror = () => reject(new Error("bokeh.js did not load"));
      document.head.append(script);
    });
    return library;
  }

  // The placeholder colours of groundswell.reporting.figures and their values in the current theme.
  function themeColours() {
    const style = getComputedStyle(document.documentElement);
    return new Map(
      ROLES.map((role, at) => [`#c0de${String(at).padStart(2, "0")}`, style.getPropertyValue(`--${role}`).trim()]),
    );
  }

  // Adapt a document to the theme and the screen. Only whole strings are placeholders.
  function adapt(value, colours, screen) {
    if (typeof value === "string") return colours.get(value) || value;
    if (value === null || typeof value !== "object") return value;
    for (const key of Object.keys(value)) value[key] = adapt(value[key], colours, screen);
    const attributes = value.attributes;
    if (value.name === "Legend" && screen.narrow && attributes) {
      attributes.ncols = attributes.tags[0];
      attributes.spacing = 2;
    }
    // A chart that reacts to dragging would block scrolling on a touch screen.
    if (value.name === "Toolbar" && screen.touch && attributes) attributes.active_drag = null;
    return value;
  }

  async function embed(element, chart) {
    const Bokeh = await loadLibrary();
    const screen = { narrow: element.clientWidth < NARROW, touch: matchMedia("(pointer: coarse)").matches };
    const box = document.createElement("div");
    box.className = "chart-interactive";
    box.style.cssText = "position:absolute;visibility:hidden;width:100%"; // measured before it is shown
    element.append(box);
    try {
      const views = await Bokeh.embed.embed_item(adapt(JSON.parse(chart.text), themeColours(), screen), box);
      chart.views?.clear();
      chart.box?.remove();
      chart.views = views;
      chart.box = box;
    } catch (error) {
      box.remove();
      throw error;
    }
    box.style.cssText = "";
    element.dataset.own = "";
    element.querySelector("svg").style.display = "none";
  }

  async function show(element) {
    try {
      const answer = await fetch(element.dataset.chart);
      if (answer.status !== 200) return; // 204: this figure has no interactive form
      const chart = { text: await answer.text() };
      await embed(element, chart);
      shown.set(element, chart);
    } catch (error) {
      console.warn("This chart stays a picture:", error);
    }
  }

  function showAgain() {
    for (const [element, chart] of shown) embed(element, chart).catch((error) => console.warn(error));
  }

  const observer = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        observer.unobserve(entry.target);
        show(entry.target);
      }
    },
    { rootMargin: "400px" },
  );
  function watch(part) {
    for (const element of part.querySelectorAll("div.chart[data-chart]")) observer.observe(element);
  }
  watch(document);
  document.addEventListener("partchange", (event) => watch(event.detail)); // a stream brought new charts
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showAgain);
  document.addEventListener("themechange", showAgain);
})();
