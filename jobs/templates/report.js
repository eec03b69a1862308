"use strict";
// Filters, pages and shows the flagged claims of the data block; all text goes in as text nodes. State is in the address.
(() => {
  const PAGE = 25;
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = Object.fromEntries(data.columns.map((name, k) => [name, k]));
  const form = document.getElementById("filter");
  const list = document.getElementById("rows");
  const facets = { verdict: "Verdict", type: "Kind", citation: "Citation", rule: "Rule", topic: "Topic",
    prompt_version: "Prompt version", model: "Model" };
  const haystacks = [];
  let page = 0;

  const make = (tag, text, name) => {
    const element = document.createElement(tag);
    if (text) element.textContent = text;
    if (name) element.className = name;
    return element;
  };
  const isolate = (tag, text, name) => {
    const element = make(tag, text, name);
    element.dir = "auto";
    return element;
  };

  const addFacet = (name, label) => {
    const counts = new Map();
    for (const row of data.rows) counts.set(row[at[name]], (counts.get(row[at[name]]) || 0) + 1);
    if (counts.size < 2) return;
    const select = make("select");
    select.name = name;
    select.append(new Option("any", ""));
    const byCount = [...counts].sort((a, b) => b[1] - a[1] || (String(a[0]) < String(b[0]) ? -1 : 1));
    for (const [value, n] of byCount.slice(0, 200)) {
      select.append(new Option(`${value ?? "(none)"} (${n.toLocaleString("en")})`, value === null ? "-" : "=" + value));
    }
    const wrap = make("label", label + " ");
    wrap.append(select);
    form.append(wrap);
  };

  const haystack = (k) => (haystacks[k] ??= data.rows[k].filter((x) => typeof x === "string").join("\n").toLowerCase());

  const matching = () => {
    const words = form.elements.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = [...form.querySelectorAll("select")].filter((s) => s.value).map((s) => [at[s.name], s.value]);
    const found = [];
    data.rows.forEach((row, k) => {
      if (wanted.some(([column, value]) => (row[column] === null ? "-" : "=" + row[column]) !== value)) return;
      if (words.every((word) => haystack(k).includes(word))) found.push(row);
    });
    return found;
  };

  const role = { supported: "evidence", contradicted: "contradicted by", unsupported: "nearest" };
  const quoted = (chunk, text, name) => {
    const quote = isolate("blockquote", "", name);
    quote.append(make("cite", chunk), " ", text || "");
    return quote;
  };

  const shown = (row) => {
    const get = (name) => row[at[name]];
    const item = make("li");
    item.append(make("span", get("verdict"), "badge " + get("verdict")), " ");
    if (get("type")) item.append(make("span", get("type"), "badge kind"), " ");
    item.append(isolate("span", get("claim"), "claim"));
    const where = make("p", "", "quiet");
    const id = make("a");
    id.append(make("bdi", get("request_id")));
    id.href = "#" + (get("anchor") || new URLSearchParams({ q: get("request_id") }));
    where.append("answer ", id);
    for (const name of ["topic", "prompt_version", "model"]) {
      if (get(name)) where.append(" · ", make("bdi", get(name)));
    }
    item.append(where, isolate("p", get("grounds"), "quiet"));
    const detail = make("details");
    detail.append(make("summary", get("chunk") ? "In the answer, and the evidence" : "In the answer; no chunk comes near"));
    const text = isolate("div", "", "text");
    text.append(get("before"), isolate("mark", get("sentence"), get("verdict")), get("after"));
    detail.append(text);
    if (get("chunk")) detail.append(quoted(`${role[get("verdict")]} ${get("chunk")}`, get("quote"), ""));
    if (get("against")) detail.append(quoted("but " + get("against"), get("against_quote"), "against"));
    item.append(detail);
    return item;
  };

  const show = () => {
    const found = matching();
    const nPages = Math.max(1, Math.ceil(found.length / PAGE));
    page = Math.min(page, nPages - 1);
    list.replaceChildren(...found.slice(page * PAGE, (page + 1) * PAGE).map(shown));
    list.start = page * PAGE + 1;
    const n = (x) => x.toLocaleString("en");
    document.getElementById("count").textContent =
      found.length === data.rows.length ? "" : `${n(found.length)} of ${n(data.rows.length)} claims match`;
    document.getElementById("pages").hidden = nPages === 1;
    document.getElementById("page").textContent = `page ${page + 1} of ${n(nPages)}`;
    document.getElementById("back").disabled = page === 0;
    document.getElementById("on").disabled = page === nPages - 1;
  };

  const store = () => {
    const state = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    history.replaceState(null, "", state.size ? "#" + state : location.href.split("#")[0]);
  };
  const restore = () => {
    if (!location.hash.includes("=")) return;
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
      if (form.elements[name]) form.elements[name].value = value;
    }
    page = 0;
    show();
    document.getElementById("all").scrollIntoView();
  };
  // A link to an answer opens it, however it is folded.
  const unfold = () => {
    const id = location.hash.slice(1);
    const target = id && (document.getElementById(id) || document.getElementById(decodeURIComponent(id)));
    if (target && target.matches("article")) {
      target.querySelector("details").open = true;
      target.scrollIntoView();
    }
  };
  const turn = (step) => {
    page += step;
    show();
    document.getElementById("all").scrollIntoView();
  };

  if (data.rows.length) {
    for (const [name, label] of Object.entries(facets)) addFacet(name, label);
    form.hidden = false;
    form.addEventListener("input", () => { page = 0; store(); show(); });
    form.addEventListener("submit", (event) => event.preventDefault());
    document.getElementById("back").addEventListener("click", () => turn(-1));
    document.getElementById("on").addEventListener("click", () => turn(1));
    show();
    restore();
  }
  unfold();
  addEventListener("hashchange", () => { restore(); unfold(); });
  const unfoldAll = document.getElementById("unfold");
  if (unfoldAll) {
    unfoldAll.hidden = false;
    unfoldAll.addEventListener("click", () => { for (const d of document.querySelectorAll("article details")) d.open = true; });
  }
  for (const time of document.querySelectorAll("time")) {
    time.title = time.textContent;
    time.textContent = new Date(time.dateTime).toLocaleString(undefined, { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", timeZoneName: "short" });
  }
})();
