"use strict";
// Lets a reader see the values at a place of a chart, and hide a line. Without the script, a table below has all values.
for (const chart of document.querySelectorAll(".chart")) {
  const svg = chart.querySelector("svg");
  const rows = [...chart.querySelectorAll("table.values tbody tr")];
  const names = [...chart.querySelectorAll("table.values thead th")].slice(1).map((cell) => cell.textContent);
  const colours = [...chart.querySelectorAll(".legend li[data-line] svg")].map((swatch) => swatch.getAttribute("class"));
  const cursor = svg.querySelector(".cursor");
  const readout = chart.querySelector(".readout");
  const hidden = new Set();
  let at = -1;

  const show = (index) => {
    at = Math.max(0, Math.min(rows.length - 1, index));
    const place = Number(rows[at].dataset.x);
    cursor.setAttribute("x1", place);
    cursor.setAttribute("x2", place);
    cursor.style.visibility = "visible";
    readout.replaceChildren();
    const head = document.createElement("b");
    head.textContent = chart.dataset.axis + " = " + rows[at].cells[0].textContent.trim();
    readout.append(head);
    const values = names.map((name, rank) => ({ name, rank, text: rows[at].cells[rank + 1].firstChild?.textContent.trim() }));
    // From the top line to the bottom one.
    values.sort((one, other) => parseFloat(other.text) - parseFloat(one.text));
    for (const { name, rank, text } of values) {
      if (!text || hidden.has(rank)) continue;
      const line = document.createElement("span");
      const colour = document.createElement("i");
      colour.className = colours[rank];
      colour.textContent = "●";
      line.append(colour, name + " " + text);
      readout.append(line);
    }
    const box = svg.getBoundingClientRect();
    const left = (place / svg.viewBox.baseVal.width) * box.width;
    readout.classList.add("shown");
    const room = chart.clientWidth;
    const wide = readout.offsetWidth;
    readout.style.left = (left + 12 + wide <= room ? left + 12 : Math.max(0, left - 12 - wide)) + "px";
  };
  const hide = () => {
    readout.classList.remove("shown");
    cursor.style.visibility = "hidden";
  };
  const nearest = (event) => {
    const box = svg.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    let best = 0;
    rows.forEach((row, index) => {
      if (Math.abs(Number(row.dataset.x) - place) < Math.abs(Number(rows[best].dataset.x) - place)) best = index;
    });
    show(best);
  };
  const picture = chart.querySelector(".picture");
  picture.tabIndex = 0;
  picture.addEventListener("pointermove", nearest);
  picture.addEventListener("pointerdown", nearest);
  picture.addEventListener("pointerleave", hide);
  picture.addEventListener("blur", hide);
  picture.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, Home: -rows.length, End: rows.length };
    if (event.key === "Escape") hide();
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(at < 0 ? 0 : at + steps[event.key]);
  });

  for (const item of chart.querySelectorAll(".legend li[data-line]")) {
    const rank = Number(item.dataset.line);
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = true;
    label.append(box, ...item.firstElementChild.childNodes);
    item.replaceChildren(label);
    box.addEventListener("change", () => {
      if (box.checked) hidden.delete(rank);
      else hidden.add(rank);
      for (const part of svg.querySelectorAll('[data-line="' + rank + '"]')) {
        part.classList.toggle("hidden", !box.checked);
      }
    });
  }
}
for (const hint of document.querySelectorAll(".script-only")) hint.hidden = false;
// Open folded parts for printing: paper would not have them otherwise.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")].filter((part) => !part.classList.contains("config"));
  folded.forEach((part) => { part.open = true; });
});
addEventListener("afterprint", () => folded.forEach((part) => { part.open = false; }));
