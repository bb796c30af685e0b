"use strict";
// Two methods over everything measured of both; the address holds the choice.
document.addEventListener("DOMContentLoaded", async () => {
  const { make } = Page;
  const root = document.body.dataset.root;
  const form = document.getElementById("pair");
  const place = document.getElementById("compared");
  const { methods, sheets } = await Page.details(form.dataset.source);
  const [first, second, variants] = [form.elements.a, form.elements.b, form.elements.variants];
  for (const select of [first, second]) select.append(...Object.keys(methods).map((name) => make("option", {}, name)));

  /** The comparisons of two methods: first the main rows of each table, with its variants all of them. */
  const between = (a, b, all) => {
    const found = [];
    for (const sheet of sheets) {
      const main = (i) => sheet.rows.findIndex((row) => row[1] === sheet.rows[i][1]) === i;
      for (const column of sheet.columns) {
        for (const [i, k, better, p, n] of column.pairs) {
          const forward = sheet.rows[i][1] === a && sheet.rows[k][1] === b;
          if (!forward && !(sheet.rows[i][1] === b && sheet.rows[k][1] === a)) continue;
          if (!all && !(main(i) && main(k))) continue;
          const [own, other] = forward ? [i, k] : [k, i];
          found.push({ sheet, column, own, other, p, n, better: p === undefined ? undefined : forward ? better : 0 - better });
        }
      }
    }
    return found;
  };

  const OUTCOMES = [[1, "first"], [0, "open"], [-1, "second"], [undefined, "untested"]];
  const words = (better) => (better === undefined ? "not tested" : better ? `${(better > 0 ? first : second).value} better` : "not told apart");
  const chip = (better) => make("span", { class: `chip o-${OUTCOMES.find(([value]) => value === better)[1]}` }, words(better));
  const count = (found, better) => found.filter((each) => each.better === better).length;
  const table = (head, rows, options) => make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": options.label },
    make("table", { class: options.class, ...(options.data ?? {}) },
      make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))), make("tbody", {}, ...rows)));

  const grouped = (found, of) => {
    const groups = new Map();
    for (const each of found) groups.set(of(each), [...(groups.get(of(each)) ?? []), each]);
    return groups;
  };

  const counts = (what, found, of, named) => table([what, ...OUTCOMES.map(([better]) => words(better)), ""],
    [...grouped(found, of)].map(([name, group]) => make("tr", {}, make("th", { scope: "row" }, named(name, group)), ...OUTCOMES.map(([better]) => make("td", { class: "num" }, String(count(group, better)))),
      make("td", { class: "bars", "aria-hidden": "true" }, make("span", { class: "share" }, ...OUTCOMES.filter(([better]) => count(group, better)).map(([better, name]) => make("span", { class: `o-${name}`, style: `flex-grow: ${count(group, better)}` })))))),
    { class: "plain counts", label: `Counts by ${what}` });

  const cell = ({ sheet, column }, i) => {
    const [label, method] = sheet.rows[i];
    return make("td", { class: "mean", "data-order": column.orders[i] }, make("a", { href: `${root}${sheet.page}#${sheet.protocol}/${i}/${column.place}` }, column.values[i]), label === method ? null : make("small", {}, ` ${label}`));
  };

  const section = (protocol, found) => {
    const address = ({ sheet }) => `${root}${sheet.page}#${sheet.protocol}`;
    const said = OUTCOMES.filter(([better]) => count(found, better)).map(([better]) => `${words(better)} in ${count(found, better)}`);
    const rows = found.map((each) => make("tr", {}, make("td", {}, make("a", { href: address(each) }, each.sheet.table)), make("td", {}, each.column.dataset), make("td", {}, each.column.label), make("td", {}, each.column.metric),
      cell(each, each.own), cell(each, each.other), make("td", {}, chip(each.better)), make("td", { class: "num", "data-order": each.p ?? "" }, each.p === undefined ? "—" : each.p.toPrecision(2)), make("td", { class: "num", "data-order": each.n ?? "" }, each.n === undefined ? "—" : String(each.n))));
    return make("section", { "aria-label": `Protocol ${protocol}` },
      make("h2", {}, `Protocol ${protocol}${found[0].sheet.reduced ? ", reduced" : ""}`),
      make("p", { class: "result" }, `${said.join(", ")} of ${found.length} ${variants.checked ? "comparison" : "column"}${found.length > 1 ? "s" : ""}.`),
      make("div", { class: "halves" }, counts("metric", found, (each) => each.column.kind, (name) => name), counts("table", found, (each) => each.sheet.table, (name, [each]) => make("a", { href: address(each) }, name))),
      table(["table", "data set", "column", "metric", first.value, second.value, "outcome", "p, uncorrected", "runs of both"], rows, { class: "sortable plain", label: "Every column", data: { "data-search": "Find a column", "data-pages": "25" } }));
  };

  const show = async () => {
    const [a, b] = [first.value, second.value];
    document.title = `${a} and ${b} · fvi-bench`;
    for (const [select, other] of [[first, b], [second, a]]) for (const option of select.options) option.disabled = option.value === other;
    for (const link of form.querySelectorAll("[data-page]")) {
      const name = form.elements[link.dataset.page].value;
      link.href = root + methods[name];
      link.textContent = `What ${name} is`;
    }
    const found = grouped(between(a, b, variants.checked), (each) => each.sheet.protocol);
    const none = make("p", {}, `Nothing is measured of both under one protocol${variants.checked ? "" : " in the main rows of a table"}.`);
    place.replaceChildren(...(found.size ? [...found].sort(([, [x]], [, [y]]) => x.sheet.reduced - y.sheet.reduced).map((group) => section(...group)) : [none]));
    await Page.sortable(place);
  };

  const write = () => {
    const address = new URLSearchParams({ a: first.value, b: second.value, ...(variants.checked ? { variants: "1" } : {}) });
    location.replace(`#${address}`);
  };
  const read = () => {
    const options = new URLSearchParams(location.hash.slice(1));
    const known = (name) => (methods[name] ? name : null);
    const partner = (name) => Object.keys(methods).filter((each) => each !== name).map((each) => [between(name, each, false).length, each]).sort((x, y) => y[0] - x[0])[0]?.[1];
    const a = known(options.get("a")) ?? (methods.FSVI ? "FSVI" : Object.keys(methods)[0]);
    const b = known(options.get("b"));
    first.value = a;
    second.value = b && b !== a ? b : partner(a);
    variants.checked = options.has("variants");
    show();
  };
  form.addEventListener("change", write);
  form.querySelector("[data-swap]").addEventListener("click", () => {
    [first.value, second.value] = [second.value, first.value];
    write();
  });
  window.addEventListener("hashchange", read);
  if (Object.keys(methods).length > 1) read();
  else place.replaceChildren(make("p", {}, "No two methods have been measured yet."));
});
