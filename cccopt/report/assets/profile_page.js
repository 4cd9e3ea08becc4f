"use strict";
// The page is complete without this script, which adds keys and sorting, and opens closed parts before printing.
(() => {
  const said = document.getElementById("said");
  const keys = document.getElementById("keys");
  const kernels = Array.from(document.querySelectorAll("section.kernel"));
  let kernel = -1;
  let line = -1;

  const show = (target, where) => {
    for (let outer = target.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
    target.focus({ preventScroll: true });
    target.scrollIntoView({ block: where });
    history.replaceState(null, "", "#" + target.id);
    said.textContent = target.dataset.said || target.textContent;
  };
  const toKernel = (step) => {
    if (!kernels.length) return;
    kernel = Math.min(Math.max(kernel + step, 0), kernels.length - 1);
    line = -1;
    show(kernels[kernel].querySelector("h2"), "start");
  };
  const toLine = (step) => {
    if (!kernels.length) return;
    if (kernel < 0) kernel = 0;
    const rows = Array.from(kernels[kernel].querySelectorAll("tr[data-rank]"));
    if (!rows.length) return;
    rows.sort((a, b) => a.dataset.rank - b.dataset.rank);
    line = Math.min(Math.max(line + step, 0), rows.length - 1);
    show(rows[line], "center");
  };
  const actions = {
    j: () => toKernel(1),
    k: () => toKernel(-1),
    n: () => toLine(1),
    p: () => toLine(-1),
    t: () => { kernel = line = -1; show(document.getElementById("kernels"), "start"); },
    "?": () => keys.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || keys.open || !Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
  // After a click or a followed link, the keys go on from there.
  document.addEventListener("focusin", (event) => {
    const section = event.target.closest("section.kernel");
    if (section && kernels[kernel] !== section) { kernel = kernels.indexOf(section); line = -1; }
  });
  const follow = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let outer = target.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
    target.scrollIntoView({ block: target.matches("tr") ? "center" : "start" });
    kernel = kernels.indexOf(target.closest("section.kernel"));
    line = -1;
  };
  addEventListener("hashchange", follow);
  follow();
  for (const button of document.querySelectorAll("button[data-opens]")) {
    button.hidden = false;
    button.addEventListener("click", () => document.getElementById(button.dataset.opens).showModal());
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("text") ? "ascending" : "descending";
        const other = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        for (const each of heads) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const body = table.tBodies[0];
        const key = (row) => row.cells[column].dataset.value;
        const sign = order === "ascending" ? 1 : -1;
        const compare = (a, b) => {
          const x = key(a), y = key(b);
          if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
          return sign * (head.classList.contains("text") ? x.localeCompare(y) : x - y);
        };
        body.append(...Array.from(body.rows).sort(compare));
      });
    });
  }
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });
})();
