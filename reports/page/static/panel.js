"use strict";
// A cell, opened: its numbers, its runs, their configuration, and the commands that make them.
(() => {
  const make = Page.make;
  const number = (value) => (value === null || value === undefined ? "—" : Number(value.toPrecision(5)).toString().replace("-", "−"));
  const seconds = (value) => (value === null ? "—" : value < 120 ? `${value.toPrecision(3)} s` : value < 7200 ? `${(value / 60).toFixed(1)} min` : `${(value / 3600).toFixed(1)} h`);

  const command = (words, text) => {
    const button = make("button", { type: "button", class: "copy" }, "Copy");
    button.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; } catch (e) { button.textContent = "Select it"; }
    });
    return [make("p", { class: "small" }, words), make("div", { class: "command" }, make("pre", {}, text), button)];
  };

  const grid = (head, rows, options = {}) => make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": options.label },
    make("table", { class: options.class ?? "" },
      make("thead", {}, make("tr", {}, ...head.map((text) => make("th", { scope: "col" }, text)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell)))))));

  const facts = (cell) => {
    const list = make("dl", { class: "figures-of" });
    const add = (term, text) => list.append(make("dt", {}, term), make("dd", {}, text));
    add("ours", cell.n ? `${cell.value.replace(/ \(.*\)$/, "")}  (n = ${cell.n} of ${cell.expected})` : cell.value);
    if (cell.paper) {
      const runs = cell.paper.runs ? `over ${cell.paper.runs} runs` : "number of runs not said";
      add("published", `${cell.published}  (${runs}; ${cell.paper.of})`);
      if (cell.paper.note) add("", cell.paper.note);
    }
    if (cell.test) add("test", `t = ${cell.test.t === null ? "—" : cell.test.t.toFixed(2).replace("-", "−")}, p = ${cell.test.p === null ? "—" : cell.test.p.toPrecision(2)}`);
    add("verdict", cell.verdict);
    if (cell.needed !== undefined) add("", cell.needed ? `${cell.needed} runs of ours would tell` : "not even 1,000 runs of ours would tell");
    if (cell.cause) add("cause", cell.cause);
    return list;
  };

  const runs = (group, cell) => {
    const values = new Map(cell.values.map(([split, seed, value]) => [`${split}/${seed}`, value]));
    const rows = group.runs.map((run) => [
      String(run.split), String(run.seed), number(values.get(`${run.split}/${run.seed}`)), make("code", { title: `results/${run.file}` }, run.key),
      run.commit || "—", run.machine, seconds(run.seconds), (run.finished || "—").replace("T", " ").replace("Z", ""),
    ]);
    const spent = group.runs.reduce((sum, run) => sum + (run.seconds ?? 0), 0);
    return [
      make("h3", {}, `Runs (${group.runs.length} of ${group.planned})`),
      rows.length ? grid(["split", "seed", "value", "record", "commit", "processor", "training", "finished (UTC)"], rows, { label: "Runs" }) : null,
      rows.length ? make("p", { class: "small" }, `Together ${seconds(spent)} of training. One record, whole: `, make("code", {}, `.venv/bin/python -m benchmarks show ${group.runs[0].key.slice(0, 10)}`)) : null,
    ];
  };

  const configuration = (group) => {
    const parts = [make("h3", {}, "Configuration")];
    if (group.beside) {
      parts.push(make("p", { class: "small" }, group.differs.length ? `What differs from the row beside it, ${group.beside}:` : `No part differs from ${group.beside}; the method or the data do.`));
      if (group.differs.length) parts.push(grid(["hyper-parameter", "here", group.beside], group.differs, { class: "wrap changed", label: "Differences" }));
    }
    const all = grid(["part", "as it was run"], group.configuration, { class: "wrap", label: "Configuration" });
    parts.push(make("details", {}, make("summary", {}, "All of it"), all));
    return parts;
  };

  Page.panel = (details, i, j, closed) => {
    const dialog = document.getElementById("panel");
    const [row, column, cell] = [details.rows[i], details.columns[j], details.cells[i][j]];
    const group = row.groups[column.dataset] ?? {};
    document.getElementById("panel-title").replaceChildren(
      `${row.label} · ${column.label}`, make("small", {}, `${column.title} on ${column.dataset}${column.condition ? `, ${column.condition}` : ""}; protocol ${details.protocol}`));
    const plot = make("div", { class: "plot", role: "img", "aria-label": `Runs of this cell${cell.paper ? " beside the published mean and error" : ""}; the values are in the table below.` });
    const body = dialog.querySelector(".body");
    body.replaceChildren(facts(cell), ...(cell.n || cell.paper ? [plot] : []));
    if (group.runs) {
      body.append(...runs(group, cell).filter(Boolean), ...configuration(group), make("h3", {}, "Make it again"));
      body.append(...command("What is missing:", group.makes), ...command("All of it, in folders of its own:", group.again));
    } else {
      body.append(make("p", {}, row.method ? "No run of this cell is planned under this protocol." : "No method of this project makes this row yet."));
    }
    dialog.onclose = () => { closed(); document.removeEventListener("themed", redraw); };
    dialog.querySelector(".close").onclick = () => dialog.close();
    dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
    const redraw = () => { if (plot.isConnected) Page.strip(plot, cell); };
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    redraw();
    document.addEventListener("themed", redraw);
  };
})();
