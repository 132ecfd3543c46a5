// Transcripts: unpacked on demand, searched and filtered. Text from models is never interpreted as HTML.
"use strict";
(() => {
  const AT_ONCE = 25;

  const unpack = async (element) => {
    const bytes = Uint8Array.from(atob(element.textContent.trim()), (letter) => letter.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(plain).text());
  };

  const make = (name, look, ...parts) => {
    const made = document.createElement(name);
    if (look) made.className = look;
    made.append(...parts);
    return made;
  };

  // A text is a string, or a list of strings and of marks: [words, look, note].
  const words = (text) => (typeof text === "string" ? text : text.map((each) => (typeof each === "string" ? each : each[0])).join(""));

  const highlighted = (text, query) => {
    if (!query) return [text];
    const low = text.toLowerCase(), parts = [];
    if (low.length !== text.length) return [text];
    let from = 0;
    for (let at = low.indexOf(query); at >= 0; at = low.indexOf(query, from)) {
      parts.push(text.slice(from, at), make("mark", "found", text.slice(at, at + query.length)));
      from = at + query.length;
    }
    return [...parts, text.slice(from)];
  };

  const shown = (text, query) => (typeof text === "string" ? [text] : text).flatMap((piece) => {
    if (typeof piece === "string") return highlighted(piece, query);
    const mark = make("mark", piece[1], ...highlighted(piece[0], query));
    if (piece[2]) mark.title = piece[2];
    return [mark];
  });

  const message = (each, query) => {
    const made = make("div", `message side-${(each.side || 0) % 6}`);
    const who = make("div", "who", make("b", "", each.speaker));
    if (each.note) who.append(" ", make("span", "", each.note));
    made.append(who);
    const add = (look, parts) => {
      const part = make("div", look, ...parts);
      part.dir = "auto";
      made.append(part);
    };
    if (each.thought) add("thought", shown(each.thought, query));
    add("said", words(each.text) ? shown(each.text, query) : [make("i", "", "(empty)")]);
    return made;
  };

  const fill = (talk, each, query) => {
    if (each.facts) talk.append(make("ul", "facts", ...each.facts.map((fact) => make("li", "", ...highlighted(fact, query)))));
    talk.append(...(each.messages || []).map((one) => message(one, query)));
    if (each.notes) talk.append(make("div", "after", ...each.notes.map((note) => make("p", "", ...highlighted(note, query)))));
  };

  const talk = (each, query, open) => {
    const head = make("summary", "", make("b", "", each.title), " ");
    if (each.outcome) head.append(make("span", "outcome", each.outcome), " ");
    head.append(make("code", "", each.key));
    const made = make("details", "talk", head);
    let filled = false;
    const build = () => {
      if (!filled) fill(made, each, query);
      filled = true;
    };
    made.addEventListener("toggle", () => made.open && build());
    if (open) {
      build();
      made.open = true;
    }
    return made;
  };

  const hay = (each) => [each.key, each.title, each.outcome, ...(each.facts || []), ...(each.notes || []),
    ...(each.messages || []).flatMap((one) => [one.speaker, words(one.thought || ""), words(one.text)])].join("\n").toLowerCase();

  const start = async (section) => {
    const list = section.querySelector(".list"), count = section.querySelector(".matches");
    const more = section.querySelector(".more"), search = section.querySelector("input");
    const selects = [...section.querySelectorAll("select")];
    const chunks = [...section.querySelectorAll(".chunk")];
    const kept = new Map();
    const chunk = (number) => {
      if (!kept.has(number)) kept.set(number, unpack(chunks[number]));
      return kept.get(number);
    };
    const index = await unpack(section.querySelector(".index"));
    const places = index.sizes.flatMap((size, number) => Array.from({ length: size }, (_, at) => [number, at]));
    let turn = 0, found = [], at = 0;

    const read = async (place) => (await chunk(place[0]))[place[1]];
    const tell = (text) => { count.textContent = text; };

    const grow = async (mine, query) => {
      const from = at, next = found.slice(at, at + AT_ONCE);
      at += next.length;
      more.hidden = at >= found.length;
      const read_ = await Promise.all(next.map((number) => read(places[number])));
      if (mine !== turn) return;
      list.append(...read_.map((each, number) => talk(each, query, query !== "" || (from === 0 && number === 0))));
      const of = found.length === places.length ? "" : ` (${places.length.toLocaleString("en")} in total)`;
      tell(`Showing ${(from + next.length).toLocaleString("en")} of ${found.length.toLocaleString("en")}${of}`);
    };

    const look = async () => {
      const mine = (turn += 1), query = search.value.trim().toLowerCase();
      const wanted = selects.filter((each) => each.value !== "").map((each) => [index.tags[each.name], Number(each.value)]);
      let some = places.map((_, number) => number).filter((number) => wanted.every(([tags, value]) => tags[number].includes(value)));
      if (query) {
        const hits = [], last = some.length;
        for (const [done, number] of some.entries()) {
          const each = await read(places[number]);
          each.hay ??= hay(each);
          if (each.hay.includes(query)) hits.push(number);
          if (done % 500 === 499) {
            tell(`Searching … ${Math.round((100 * done) / last)}%`);
            await new Promise((go) => setTimeout(go));
            if (mine !== turn) return;
          }
        }
        some = hits;
      }
      if (mine !== turn) return;
      found = some;
      at = 0;
      list.replaceChildren();
      await grow(mine, query);
    };

    let wait = 0;
    search.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(look, 150); });
    selects.forEach((each) => each.addEventListener("change", look));
    more.addEventListener("click", () => grow(turn, search.value.trim().toLowerCase()));
    section.querySelector(".search").hidden = false;
    await look();
  };

  for (const section of document.querySelectorAll(".transcripts")) {
    start(section).catch((error) => {
      section.querySelector(".matches").textContent = `This browser cannot show the transcripts: ${error.message}`;
    });
  }
})();
