"use strict";
// A table's page: protocols, filters, sorting, and which cell is open.
document.addEventListener("DOMContentLoaded", async () => {
  await Page.sorting();
  const sheets = [...document.querySelectorAll(".sheet")];
  const buttons = [...document.querySelectorAll(".protocols button")];

  const begin = (sheet) => {
    if (sheet.dataset.begun) return;
    sheet.dataset.begun = "1";
    const element = sheet.querySelector("table.cells");
    const heads = [...element.querySelectorAll("thead th")];
    const table = new DataTable(element, {
      paging: false, info: false, autoWidth: false, order: [],
      layout: { topStart: null, topEnd: null, bottomStart: null, bottomEnd: null },
      columnDefs: heads.map((head, target) => target
        ? { target, type: "value", orderSequence: head.dataset.better === "1" ? ["desc", "asc", ""] : ["asc", "desc", ""] }
        : { target, orderSequence: ["asc", "desc", ""] }),
    });
    const tools = sheet.querySelector(".tools");
    tools.hidden = false;
    const columns = new DataTable.Buttons(table, { buttons: [{ extend: "colvis", text: "Columns", columns: ":not(.method)" }] });
    tools.querySelector(".columns").append(columns.container()[0] ?? columns.container());
    tools.querySelector("[data-rows]").addEventListener("input", (event) => table.column(0).search(event.target.value).draw());
    const chosen = {};
    for (const select of tools.querySelectorAll("[data-by]")) {
      select.addEventListener("change", () => {
        chosen[select.dataset.by] = select.value;
        const wanted = heads.map((head) => Object.entries(chosen).every(([by, value]) => !value || head.dataset[by] === value));
        table.columns().every(function (index) { if (index) this.visible(wanted[index], false); });
        table.columns.adjust();
      });
    }
    for (const box of tools.querySelectorAll("[data-show]")) {
      box.addEventListener("change", () => {
        if (box.dataset.show !== "empty") element.classList.toggle(`no-${box.dataset.show}`, !box.checked);
        else table.search.fixed("empty", box.checked ? null : (text, data, row) => !table.row(row).node().classList.contains("empty")).draw();
      });
    }
    element.addEventListener("click", (event) => {
      const cell = event.target.closest("[data-cell]");
      if (cell) show(sheet, cell.dataset.cell);
    });
    const costs = sheet.querySelector("[data-costs]");
    if (costs) Page.costs(costs, sheet.dataset.details);
  };

  const choose = (protocol) => {
    const chosen = sheets.find((sheet) => sheet.dataset.protocol === protocol) ?? sheets[0];
    for (const sheet of sheets) sheet.hidden = sheet !== chosen;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.protocol === chosen.dataset.protocol));
    begin(chosen);
    return chosen;
  };

  const address = (text) => { try { history.replaceState(null, "", text); } catch (e) { /* some browsers refuse for files */ } };

  const show = async (sheet, place) => {
    const [i, j] = place.split("/").map(Number);
    address(`#${sheet.dataset.protocol}/${place}`);
    const details = await Page.details(sheet.dataset.details);
    if (details.cells[i]?.[j]) Page.panel(details, i, j, () => address(`#${sheet.dataset.protocol}`));
  };

  for (const button of buttons) {
    button.addEventListener("click", () => { choose(button.dataset.protocol); address(`#${button.dataset.protocol}`); });
  }
  const follow = () => {
    const [protocol, ...place] = decodeURIComponent(location.hash.slice(1)).split("/");
    const sheet = choose(protocol);
    if (place.length === 2) show(sheet, place.join("/"));
  };
  window.addEventListener("hashchange", follow);
  follow();
});
