"use strict";
// Plots, drawn by Bokeh, whose scripts are loaded when the first one is asked for.
(() => {
  const bokeh = () => Page.library("bokeh.min.js").then(() => Page.library("bokeh-api.min.js"));

  const styled = (figure) => {
    for (const axis of [...figure.xaxes, ...figure.yaxes]) {
      Object.assign(axis, { axis_line_color: Page.colour("missing"), major_tick_line_color: Page.colour("missing"), minor_tick_line_color: null,
        major_label_text_color: Page.colour("soft"), axis_label_text_color: Page.colour("soft"), axis_label_text_font_style: "normal" });
    }
    for (const grid of figure.center.filter((each) => each.type === "Grid")) grid.grid_line_color = Page.colour("line");
    return figure;
  };
  const figure = (options) => Bokeh.Plotting.figure({ sizing_mode: "stretch_width", toolbar_location: null, tools: "", output_backend: "svg",
    background_fill_color: null, border_fill_color: null, outline_line_color: null, ...options });
  const show = async (place, drawn) => {
    place.replaceChildren();
    await Bokeh.Plotting.show(styled(drawn), place);
  };
  const tell = (drawn, renderer, tooltips) => drawn.add_tools(new Bokeh.HoverTool({ renderers: [renderer], tooltips }));

  /** The runs of a cell as points, their mean and standard error, above the published mean and error. */
  Page.strip = async (place, cell) => {
    await bokeh();
    const labels = new Map();
    const drawn = figure({ height: cell.paper && cell.n ? 150 : 105, y_range: [cell.paper ? -0.6 : 0.4, cell.n ? 1.6 : 0.6] });
    const bar = (mean, error, y, colour) => {
      if (error) {
        drawn.segment({ x0: [mean - error], x1: [mean + error], y0: [y], y1: [y], line_color: colour, line_width: 2.5 });
        for (const end of [mean - error, mean + error]) drawn.segment({ x0: [end], x1: [end], y0: [y - 0.12], y1: [y + 0.12], line_color: colour, line_width: 2.5 });
      }
      drawn.scatter([mean], [y], { marker: "diamond", size: 13, fill_color: colour, line_color: colour });
    };
    if (cell.n) {
      labels.set(1, `ours (n = ${cell.n})`);
      const spread = cell.values.map((_, k) => 1.28 + 0.2 * ((k * 0.618034) % 1));
      const source = new Bokeh.ColumnDataSource({ data: { x: cell.values.map((run) => run[2]), y: spread, split: cell.values.map((run) => run[0]), seed: cell.values.map((run) => run[1]) } });
      const points = drawn.scatter({ field: "x" }, { field: "y" }, { source, size: 8, fill_alpha: 0.55, fill_color: Page.colour("accent"), line_color: Page.colour("accent") });
      tell(drawn, points, [["split", "@split"], ["seed", "@seed"], ["value", "@x{0.0000}"]]);
      bar(cell.mean, cell.stderr, 1, Page.colour("ink"));
    }
    if (cell.paper) {
      labels.set(0, "published");
      bar(cell.paper.mean, cell.paper.stderr, 0, Page.colour("differs"));
    }
    const [axis] = drawn.yaxes;
    axis.ticker = new Bokeh.FixedTicker({ ticks: [...labels.keys()] });
    axis.major_label_overrides = labels;
    drawn.ygrids[0].visible = false;
    await show(place, drawn);
  };

  // Costs are compared on one processor model only: on the one that most rows have.
  const costs = (details, j, method) => {
    const { dataset, better } = details.columns[j];
    const models = new Map();
    const rows = details.rows.map((row, i) => ({ label: row.label, own: row.method === method, cell: details.cells[i][j], runs: (row.groups[dataset]?.runs ?? []).filter((run) => run.seconds !== null) }))
      .filter((row) => row.cell?.n && row.runs.length);
    for (const row of rows) for (const model of new Set(row.runs.map((run) => run.machine))) models.set(model, (models.get(model) ?? 0) + 1);
    const model = [...models.keys()].sort((a, b) => models.get(b) - models.get(a))[0];
    const points = [];
    for (const row of rows) {
      const times = row.runs.filter((run) => run.machine === model).map((run) => run.seconds);
      if (times.length) points.push({ ...row, mean: row.cell.mean, error: row.cell.stderr, seconds: Math.max(1e-3, times.reduce((a, b) => a + b) / times.length) });
    }
    points.sort((a, b) => a.seconds - b.seconds);
    let best = null;
    for (const point of points) {
      point.front = best === null || better * point.mean > better * best;
      if (point.front) best = point.mean;
    }
    return { points, model, left: rows.length - points.length };
  };

  const pareto = async (place, details, j, method) => {
    await bokeh();
    const { points, model, left } = costs(details, j, method);
    const column = details.columns[j];
    const drawn = figure({ height: 360, x_axis_type: "log", x_axis_label: "training time of a run (s)", y_axis_label: column.title });
    drawn.x_range.range_padding = 0.35;
    drawn.y_range.range_padding = 0.15;
    const front = points.filter((point) => point.front);
    const path = { x: [], y: [] };
    front.forEach((point, k) => {
      if (k) { path.x.push(point.seconds); path.y.push(front[k - 1].mean); }
      path.x.push(point.seconds); path.y.push(point.mean);
    });
    drawn.line(path.x, path.y, { line_color: Page.colour("missing"), line_dash: "dashed", line_width: 1.5 });
    const colour = (point) => Page.colour(point.own ? "differs" : point.front ? "accent" : "uninformative");
    const data = { x: points.map((p) => p.seconds), y: points.map((p) => p.mean), label: points.map((p) => p.label), value: points.map((p) => p.cell.value),
      colour: points.map(colour), size: points.map((p) => (p.own ? 13 : 9)), low: points.map((p) => p.mean - (p.error ?? 0)), high: points.map((p) => p.mean + (p.error ?? 0)) };
    const source = new Bokeh.ColumnDataSource({ data });
    drawn.segment({ field: "x" }, { field: "low" }, { field: "x" }, { field: "high" }, { source, line_color: { field: "colour" } });
    const dots = drawn.scatter({ field: "x" }, { field: "y" }, { source, size: { field: "size" }, fill_color: { field: "colour" }, line_color: { field: "colour" } });
    drawn.text({ field: "x" }, { field: "y" }, { field: "label" }, { source, x_offset: 9, y_offset: -4, text_font_size: "11px", text_color: Page.colour("ink") });
    tell(drawn, dots, [["row", "@label"], [column.metric, "@value"], ["seconds", "@x{0.00}"]]);
    await show(place, drawn);
    const sense = column.better > 0 ? "upper" : "lower";
    place.append(Page.make("p", { class: "small" }, `Times on ${model}${left ? `; ${left} ${left === 1 ? "row" : "rows"} made on other processors left out` : ""}. Better and cheaper is ${sense} left; the dashed line joins the rows that no other beats in both.`));
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", `Quality against cost: ${points.map((p) => `${p.label} ${p.cell.value} in ${p.seconds.toPrecision(3)} seconds`).join("; ")}`);
  };

  /** Quality against cost in a section, of a sheet or of one that is chosen: drawn when it comes into sight. */
  Page.costs = (section, source) => {
    section.hidden = false;
    const [tables, columns, place] = [section.querySelector("[data-table]"), section.querySelector("[data-column]"), section.querySelector(".plot")];
    const method = section.dataset.method;
    const details = () => Page.details(tables ? tables.value : source);
    const draw = async () => pareto(place, await details(), Number(columns.value), method);
    const fill = async () => {
      const found = await details();
      const able = found.columns.map((column, j) => [column, j]).filter(([column, j]) => column.better && column.metric !== "training time (s)" && costs(found, j, method).points.length > 1);
      columns.replaceChildren(...able.map(([column, j]) => Page.make("option", { value: j }, `${column.label.includes(column.dataset) ? "" : `${column.dataset}: `}${column.label} · ${column.title}`)));
      if (able.length) await draw();
      else place.replaceChildren(Page.make("p", { class: "small" }, "No column of this table has two rows whose time is known."));
    };
    let begun = false;
    new IntersectionObserver((seen, observer) => {
      if (!seen.some((each) => each.isIntersecting)) return;
      observer.disconnect();
      begun = true;
      fill();
    }, { rootMargin: "200px" }).observe(section);
    columns.addEventListener("change", draw);
    tables?.addEventListener("change", fill);
    document.addEventListener("themed", () => { if (begun && columns.value) draw(); });
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const section of document.querySelectorAll("[data-costs][data-method]")) Page.costs(section);
  });
})();
