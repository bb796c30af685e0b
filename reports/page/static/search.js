"use strict";
// The search: a dialog over a list of all that the site has, which is loaded when it is first opened.
(() => {
  const { make } = Page;
  const root = document.body.dataset.root;
  const MOST = 40;
  const plain = (text) => text.normalize("NFKD").toLowerCase();
  const list = make("div", { id: "hits", role: "listbox", "aria-label": "Found" });
  const input = make("input", { type: "search", role: "combobox", "aria-label": "Search", "aria-controls": "hits", "aria-expanded": "false", "aria-autocomplete": "list", autocomplete: "off", placeholder: "Table, method, data set, metric, claim or figure" });
  const status = make("p", { class: "small", role: "status" });
  const close = make("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
  const dialog = make("dialog", { class: "search", "aria-label": "Search" }, make("div", { class: "ask" }, input, close), list, status);
  document.body.append(dialog);
  let entries = [];

  /** How well an entry answers: every word has to be in it; 0 where one is not. */
  const score = (entry, words) => {
    let sum = 0;
    for (const word of words) {
      const at = entry.name.indexOf(word);
      const found = at === 0 ? 8 : at > 0 ? (/\w/.test(entry.name[at - 1]) ? 3 : 5) : entry.all.includes(word) ? 1 : 0;
      if (!found) return 0;
      sum += found;
    }
    return sum + (entry.name === words.join(" ") ? 8 : 0);
  };

  const choose = (option) => {
    for (const each of list.children) each.setAttribute("aria-selected", String(each === option));
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  };
  const chosen = () => list.querySelector("[aria-selected=true]");

  const show = () => {
    const words = plain(input.value).split(/\s+/).filter(Boolean);
    const found = words.length ? entries.map((entry) => [score(entry, words), entry]).filter(([points]) => points).sort((a, b) => b[0] - a[0]) : [];
    list.replaceChildren(...found.slice(0, MOST).map(([, entry], k) => make("a", { role: "option", id: `hit-${k}`, href: root + entry.address, tabindex: "-1", "aria-selected": "false" },
      make("span", { class: "kind" }, entry.kind), make("span", { class: "title" }, entry.title), make("small", {}, entry.about))));
    input.setAttribute("aria-expanded", String(found.length > 0));
    status.textContent = !words.length ? "Words in any order; ↑ ↓ choose, Enter opens, Esc closes." : found.length ? `${found.length} found${found.length > MOST ? `, the best ${MOST} shown` : ""}` : "Nothing found.";
    choose(list.firstElementChild);
  };

  const open = async () => {
    if (!dialog.open) dialog.showModal();
    input.select();
    if (!entries.length) {
      const all = await Page.details(`${root}data/search.js`);
      entries = all.map(([kind, title, about, address, words]) => ({ kind, title, about, address, name: plain(title), all: plain(`${kind} ${title} ${about} ${words}`) }));
    }
    show();
  };

  input.addEventListener("input", show);
  input.addEventListener("keydown", (event) => {
    const options = [...list.children];
    const at = options.indexOf(chosen());
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
    if (to !== undefined && options.length) {
      event.preventDefault();
      choose(options[(to + options.length) % options.length]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      chosen()?.click();
    } else if (event.key === "Escape") { // which would only empty the field
      event.preventDefault();
      dialog.close();
    }
  });
  list.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  close.addEventListener("click", () => dialog.close());
  document.getElementById("find").addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, select, textarea, dialog[open]");
    if ((event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) || (event.key === "k" && (event.ctrlKey || event.metaKey))) {
      event.preventDefault();
      open();
    }
  });
})();
