// What every page's script adds: copying commands, sorting tables, opening what is folded on paper. Everything it
// shows it reads from the page itself; it asks for nothing and writes text only as text.
"use strict";
const tools = (() => {
  const page = document;
  page.documentElement.classList.add("js");
  const all = (selector, within) => Array.from((within || page).querySelectorAll(selector));

  // An element with a class and children; strings become text.
  const make = (tag, name, ...children) => {
    const element = page.createElement(tag);
    if (name) element.className = name;
    element.append(...children);
    return element;
  };
  const button = (name, text, press) => {
    const made = make("button", name, text);
    made.type = "button";
    made.addEventListener("click", press);
    return made;
  };

  // Copying.
  for (const command of all("[data-copy]")) {
    const said = (text) => {
      press.textContent = text;
      setTimeout(() => { press.textContent = "Copy"; }, 1500);
    };
    const select = () => {
      const range = page.createRange();
      range.selectNodeContents(command);
      const selection = getSelection();
      selection.removeAllRanges();
      selection.addRange(range);
      said(page.execCommand("copy") ? "Copied" : "Selected");
    };
    const press = button("copy", "Copy", () => {
      if (!navigator.clipboard) { select(); return; }
      navigator.clipboard.writeText(command.textContent).then(() => said("Copied"), select);
    });
    press.setAttribute("aria-live", "polite");
    const frame = make("div", "copying");
    command.replaceWith(frame);
    frame.append(command, press);
  }

  // Sorting: rising, falling, and the order of the page again.
  for (const table of all("table")) {
    const groups = table.tBodies.length > 1;
    const parent = groups ? table : table.tBodies[0];
    const heads = all("thead th", table);
    const items = groups ? Array.from(table.tBodies) : Array.from(parent ? parent.rows : []);
    if (items.length < 2) continue;
    heads.forEach((head, column) => {
      if (head.dataset.sort !== "yes") return;
      const text = (item) => (groups ? item.rows[0] : item).cells[column].textContent.trim();
      const number = (item) => parseFloat(text(item).replace(/,/g, ""));
      const compare = (a, b) => {
        if (!head.classList.contains("n")) return text(a).localeCompare(text(b), "en", { numeric: true });
        const [x, y] = [number(a), number(b)];
        // What is not known comes last, whichever way.
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return x - y;
      };
      const inside = button("sort", "", () => {
        const order = { none: "ascending", ascending: "descending", descending: "none" }[
          head.getAttribute("aria-sort") || "none"];
        for (const other of heads) other.removeAttribute("aria-sort");
        const sorted = items.slice();
        if (order !== "none") {
          head.setAttribute("aria-sort", order);
          sorted.sort(compare);
          if (order === "descending") {
            const known = sorted.filter((item) => !head.classList.contains("n") || !Number.isNaN(number(item)));
            const unknown = sorted.filter((item) => !known.includes(item));
            known.reverse();
            sorted.splice(0, sorted.length, ...known, ...unknown);
          }
        }
        parent.append(...sorted);
      });
      inside.append(...head.childNodes);
      head.append(inside);
    });
  }

  // What cannot be is in sight, wherever its drawing begins.
  for (const box of all(".sideways")) {
    const bad = box.querySelector(".impossible");
    if (!bad || box.scrollWidth <= box.clientWidth) continue;
    const [outer, inner] = [box.getBoundingClientRect(), bad.getBoundingClientRect()];
    box.scrollLeft += inner.left - outer.left - Math.max(0, (outer.width - inner.width) / 2);
  }

  // Everything folded is open on paper.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = all("details:not([open])");
    for (const folded of opened) folded.open = true;
  });
  addEventListener("afterprint", () => {
    for (const folded of opened) folded.open = false;
  });

  return { all, make, button };
})();
