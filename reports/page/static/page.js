"use strict";
// Theme, and the tables that are only sorted and searched. Names from records enter pages as text and never as HTML.
(() => {
  const html = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (html.dataset.theme ? html.dataset.theme === "dark" : dark.matches);
  const apply = () => {
    html.classList.toggle("dark", isDark());
    document.dispatchEvent(new Event("themed"));
  };
  document.getElementById("theme").addEventListener("click", () => {
    html.dataset.theme = isDark() ? "light" : "dark";
    try { localStorage.setItem("theme", html.dataset.theme); } catch (e) { /* it is forgotten, then */ }
    apply();
  });
  document.querySelector(".skip").addEventListener("click", (event) => { // as an address it would replace the choice that is in the address
    event.preventDefault();
    document.getElementById("main").focus();
  });
  dark.addEventListener("change", apply);
  apply();

  const waiting = {};
  window.Page = {
    /** An element with attributes and children; strings become text. */
    make(tag, attributes = {}, ...children) {
      const element = document.createElement(tag);
      for (const [name, value] of Object.entries(attributes)) {
        if (name === "class") element.className = value;
        else element.setAttribute(name, value);
      }
      element.append(...children.filter((child) => child !== null && child !== undefined));
      return element;
    },
    colour: (name) => getComputedStyle(html).getPropertyValue(`--${name}`).trim(),
    /** A script of the site, loaded once. */
    script(source) {
      waiting[source] ??= new Promise((resolve, reject) => {
        const script = Page.make("script", { src: source });
        script.onload = resolve;
        script.onerror = () => reject(new Error(`${source} is not there`));
        document.head.append(script);
      });
      return waiting[source];
    },
    _received: null,
    received(packed) { Page._received = packed; },
    unpacked(packed) {
      const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
      return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
    },
    /** Return the content of a packed file at its first use: its script is loaded once, one script after the other. */
    packed(source, read) {
      const before = Page._last ?? Promise.resolve();
      Page._kept ??= {};
      Page._kept[source] ??= Page._last = before.then(() => Page.script(source)).then(() => read(Page.unpacked(Page._received)));
      return Page._kept[source];
    },
    /** The details of a sheet. */
    details: (source) => Page.packed(source, (response) => response.json()),
    /** A packed library of the site, run once. */
    library: (name) => Page.packed(`${document.body.dataset.root}assets/${name}`, async (response) => {
      const address = URL.createObjectURL(new Blob([await response.text()], { type: "text/javascript" }));
      await Page.script(address);
      URL.revokeObjectURL(address);
    }),
    /** What makes tables sortable. */
    sorting: () => Page._sorting ??= Page.library("datatables.js").then(() => {
      // Cells without a value come last, whichever way a column is sorted.
      const order = (sign) => (a, b) => (isNaN(a) ? (isNaN(b) ? 0 : 1) : isNaN(b) ? -1 : sign * (a - b));
      DataTable.ext.type.order["value-pre"] = (text) => (text === "" || text === null ? NaN : Number(text));
      DataTable.ext.type.order["value-asc"] = order(1);
      DataTable.ext.type.order["value-desc"] = order(-1);
    }),
    /** Makes the tables of a part of the page sortable, which are said to be. */
    async sortable(part) {
      const tables = part.querySelectorAll("table.sortable");
      if (!tables.length) return [];
      await Page.sorting();
      return [...tables].filter((table) => table.isConnected).map((table) => {
        const paged = Number(table.dataset.pages || 0);
        const cells = [...(table.tBodies[0].rows[0]?.cells ?? [])];
        const numbers = [...cells.keys()].filter((k) => "order" in cells[k].dataset);
        const made = new DataTable(table, {
          paging: paged > 0 && table.tBodies[0].rows.length > paged, pageLength: paged || 10, info: false, order: [],
          autoWidth: false, columnDefs: [{ targets: numbers, type: "value" }, { targets: "_all", className: "" }],
          layout: { topStart: "search", topEnd: null, bottomStart: null, bottomEnd: paged ? "paging" : null },
          language: { search: table.dataset.search ?? "Find" },
        });
        const pages = (length) => () => paged && table.isConnected && made.page.len(length).draw();
        window.addEventListener("beforeprint", pages(-1)); // paper has every row
        window.addEventListener("afterprint", pages(paged));
        return made;
      });
    },
  };

  document.addEventListener("DOMContentLoaded", async () => {
    if (document.getElementById("compared")) return; // its script does so
    const [table] = await Page.sortable(document);
    for (const select of document.querySelectorAll("[data-narrows]")) {
      select.addEventListener("change", () => table.column(Number(select.dataset.narrows)).search.fixed("narrows", select.value ? (text) => text === select.value : null).draw());
    }
    // #find=words narrows the first table; a name brings what has it into sight, which sorting may have moved.
    const follow = () => {
      const hash = decodeURIComponent(location.hash.slice(1));
      if (table && hash.startsWith("find=")) table.search(hash.slice(5)).draw();
      const target = hash && document.getElementById(hash);
      if (target?.tagName === "DETAILS") target.open = true;
      target?.scrollIntoView?.();
    };
    window.addEventListener("hashchange", follow);
    follow();
  });
})();
