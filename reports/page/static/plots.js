"use strict";
// Plots, drawn by Bokeh, whose scripts are loaded with the first plot.
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

  // Costs are compared on one processor model only: on the one that most rows have; on a method's page, of its own.
  const costs = (details, j, method) => {
    const { dataset, better } = details.columns[j];
    const models = new Map();
    const rows = details.rows.map((row, i) => ({ label: row.label, look: row.look, own: row.method === method, cell: details.cells[i][j], runs: (row.groups[dataset]?.runs ?? []).filter((run) => run.seconds !== null) }))
      .filter((row) => row.cell?.n && row.runs.length);
    for (const row of rows) for (const model of new Set(row.runs.map((run) => run.machine))) models.set(model, (models.get(model) ?? 0) + 1);
    const own = new Set(rows.filter((row) => row.own).flatMap((row) => row.runs.map((run) => run.machine)));
    const model = [...models.keys()].filter((each) => !own.size || own.has(each)).sort((a, b) => models.get(b) - models.get(a))[0];
    const points = [];
    for (const row of rows) {
      const times = row.runs.filter((run) => run.machine === model).map((run) => run.seconds);
      if (times.length) points.push({ ...row, mean: row.cell.mean, error: row.cell.stderr, seconds: Math.max(1e-3, times.reduce((a, b) => a + b) / times.length) });
    }
    points.sort((a, b) => a.seconds - b.seconds);
    let best = null;
    for (const point of points) {
      point.front = details.ranked && (best === null || better * point.mean > better * best);
      if (point.front) best = point.mean;
    }
    return { points, model, left: rows.length - points.length };
  };

  const FONT = "11px helvetica, arial, sans-serif";
  const AROUND = [[1, 0], [-1, 0], [0, -1], [0, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]];
  const AWAY = [8, 14, 22, 32, 44, 58, 74, 92];

  /** The middles of labels around points, all in pixels of a frame: beside the point, else further away, within the frame
   * and over no other label, point or line (lines: pairs of ends); null where there is no such place. */
  const places = (points, lines, width, height) => {
    const taken = points.map(({ x, y }) => ({ x, y, w: 12, h: 12 }));
    for (const [from, to] of lines) taken.push({ x: (from.x + to.x) / 2, y: (from.y + to.y) / 2, w: Math.abs(from.x - to.x) + 2, h: Math.abs(from.y - to.y) + 2 });
    const free = (box) => taken.every((each) => 2 * Math.abs(each.x - box.x) >= each.w + box.w || 2 * Math.abs(each.y - box.y) >= each.h + box.h);
    const within = ({ x, y, w, h }) => x - w / 2 >= 0 && x + w / 2 <= width && y - h / 2 >= 0 && y + h / 2 <= height;
    return points.map(({ x, y, w }) => {
      for (const away of AWAY) {
        for (const [dx, dy] of AROUND) {
          const box = { x: x + dx * (away + w / 2), y: y + dy * (away + 6), w, h: 13 };
          const lead = away > AWAY[1] ? [0.35, 0.5, 0.65, 0.8, 0.95].map((part) => ({ x: x + dx * away * part, y: y + dy * away * part, w: 2, h: 2 })) : [];
          if (within(box) && [box, ...lead].every(free)) {
            taken.push(box, ...lead);
            return { x: box.x, y: box.y, lead: lead.length ? { x: x + dx * away, y: y + dy * away } : null };
          }
        }
      }
      return null;
    });
  };

  /** Names beside points and over none of the lines, placed anew whenever the plot has another size; left hears how many
   * have no room. */
  const named = (drawn, points, lines, left) => {
    const { x_range: xs, y_range: ys } = drawn;
    const names = new Bokeh.ColumnDataSource({ data: { x: [], y: [], label: [] } });
    const leads = new Bokeh.ColumnDataSource({ data: { x: [], y: [], to_x: [], to_y: [] } });
    drawn.segment({ field: "x" }, { field: "y" }, { field: "to_x" }, { field: "to_y" }, { source: leads, line_color: Page.colour("soft"), line_dash: "dotted", line_width: 1 });
    drawn.text({ field: "x" }, { field: "y" }, { field: "label" }, { source: names, text_align: "center", text_baseline: "middle", text_font: FONT.slice(5), text_font_size: FONT.slice(0, 4), text_color: Page.colour("ink") });
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = FONT;
    const place = () => {
      const { inner_width: width, inner_height: height } = drawn;
      if (!width || !height) return;
      const [start, length] = [Math.log(xs.start), Math.log(xs.end / xs.start)];
      const at = ({ x, y }) => ({ x: ((Math.log(x) - start) / length) * width, y: ((ys.end - y) / (ys.end - ys.start)) * height });
      const of = ({ x, y }) => ({ x: Math.exp(start + (x / width) * length), y: ys.end - (y / height) * (ys.end - ys.start) });
      const own = points.map((point) => ({ x: point.seconds, y: point.mean }));
      const found = places(own.map((point, k) => ({ ...at(point), w: pen.measureText(points[k].label).width + 4 })), lines.map((ends) => ends.map(at)), width, height)
        .map((spot, k) => spot && { ...of(spot), lead: spot.lead && of(spot.lead), own: own[k], label: points[k].label });
      const shown = found.filter(Boolean);
      const far = shown.filter((each) => each.lead);
      names.data = { x: shown.map((each) => each.x), y: shown.map((each) => each.y), label: shown.map((each) => each.label) };
      leads.data = { x: far.map((each) => each.own.x), y: far.map((each) => each.own.y), to_x: far.map((each) => each.lead.x), to_y: far.map((each) => each.lead.y) };
      left(found.length - shown.length);
    };
    for (const name of ["inner_width", "inner_height"]) drawn.properties[name].change.connect(place);
    return place;
  };

  /** A range around values, a tenth wider on either side. */
  const around = (values, log) => {
    const [low, high] = [Math.min(...values), Math.max(...values)].map((value) => (log ? Math.log(value) : value));
    const more = (high - low || Math.abs(high) || 1) / 10;
    const [start, end] = [low - more, high + more].map((value) => (log ? Math.exp(value) : value));
    return new Bokeh.Range1d({ start, end });
  };

  /** The marker of a method, as in the figures; a method that the figures draw in black has the colour of the words. */
  const marker = ([tone, path, hollow]) => {
    const ink = Page.colour("ink");
    const own = tone === "#000000" ? ink : tone;
    const look = hollow ? `fill="${Page.colour("card")}" stroke="${own}" stroke-width="1.6"` : `fill="${own}" stroke="${ink}" stroke-width=".6"`;
    return `data:image/svg+xml,${encodeURIComponent(`<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24" viewBox="-6 -6 12 12"><path d="${path}" ${look}/></svg>`)}`;
  };

  const pareto = async (place, details, j, method) => {
    await bokeh();
    const { points, model, left } = costs(details, j, method);
    const column = details.columns[j];
    const data = { x: points.map((p) => p.seconds), y: points.map((p) => p.mean), label: points.map((p) => p.label), value: points.map((p) => p.cell.value),
      size: points.map((p) => (p.own ? 22 : 15)), url: points.map((p) => marker(p.look)), low: points.map((p) => p.mean - (p.error ?? 0)), high: points.map((p) => p.mean + (p.error ?? 0)) };
    const drawn = figure({ height: 360, x_axis_type: "log", x_axis_label: "training time of a run (s)", y_axis_label: column.title, x_range: around(data.x, true), y_range: around([...data.low, ...data.high]) });
    const front = points.filter((point) => point.front);
    const path = { x: [], y: [] };
    front.forEach((point, k) => {
      if (k) { path.x.push(point.seconds); path.y.push(front[k - 1].mean); }
      path.x.push(point.seconds); path.y.push(point.mean);
    });
    drawn.line(path.x, path.y, { line_color: Page.colour("missing"), line_dash: "dashed", line_width: 1.5 });
    const source = new Bokeh.ColumnDataSource({ data });
    drawn.segment({ field: "x" }, { field: "low" }, { field: "x" }, { field: "high" }, { source, line_color: Page.colour("soft") });
    const size = { field: "size", units: "screen" };
    drawn.image_url({ field: "url" }, { field: "x" }, { field: "y" }, size, size, { source, anchor: "center" });
    const dots = drawn.scatter({ field: "x" }, { field: "y" }, { source, size: { field: "size" }, fill_alpha: 0, line_alpha: 0 });
    const unnamed = Page.make("span");
    const bars = points.map((p, k) => [{ x: p.seconds, y: data.low[k] }, { x: p.seconds, y: data.high[k] }]);
    const steps = path.x.slice(1).map((x, k) => [{ x: path.x[k], y: path.y[k] }, { x, y: path.y[k + 1] }]);
    const write = named(drawn, points, [...bars, ...steps], (count) => unnamed.replaceChildren(count ? ` Without room for ${count === 1 ? "a name" : `${count} names`}: point at a mark for its name.` : ""));
    tell(drawn, dots, [["row", "@label"], [column.metric, "@value"], ["seconds", "@x{0.00}"]]);
    await show(place, drawn);
    write();
    const sense = column.better > 0 ? "upper" : "lower";
    place.append(Page.make("p", { class: "small" }, `Times on ${model}${left ? `; ${left} ${left === 1 ? "row" : "rows"} made on other processors left out` : ""}. ${details.ranked ? `Better and cheaper is ${sense} left; the dashed line joins the rows that no other beats in both.` : "They rank nothing: the table's notes say why."}`, unnamed));
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", `Quality against cost: ${points.map((p) => `${p.label} ${p.cell.value} in ${p.seconds.toPrecision(3)} seconds`).join("; ")}`);
  };

  const plain = (name) => name.toLowerCase().replace(/[^a-z0-9]/g, "");

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
      columns.replaceChildren(...able.map(([column, j]) => Page.make("option", { value: j }, `${plain(column.label).includes(plain(column.dataset)) ? "" : `${column.dataset}: `}${column.label} · ${column.title}`)));
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
