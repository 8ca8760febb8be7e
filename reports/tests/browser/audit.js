// What a reader would stumble over, looked for by the browser itself: `audit.overlaps()`, `audit.contrast()`,
// `audit.sideways()`, `audit.hidden()`. Each returns a list of sentences, empty where all is well.
window.audit = (() => {
  const visible = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true, contentVisibilityAuto: true });
  // Every piece of text that is drawn, line by line, cut to what its ancestors let show.
  const texts = () => {
    const out = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const element = node.parentElement;
      if (!node.data.trim() || ["SCRIPT", "STYLE"].includes(element.tagName) || !visible(element)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const rect of range.getClientRects()) {
        let box = { left: rect.left, top: rect.top, right: rect.right, bottom: rect.bottom };
        for (let up = element; up && up !== document.body; up = up.parentElement) {
          const style = getComputedStyle(up);
          if (style.overflowX === "visible" && style.overflowY === "visible") continue;
          const cut = up.getBoundingClientRect();
          box = { left: Math.max(box.left, cut.left), top: Math.max(box.top, cut.top),
            right: Math.min(box.right, cut.right), bottom: Math.min(box.bottom, cut.bottom) };
        }
        if (box.right - box.left > 1 && box.bottom - box.top > 1) out.push({ node, element, ...box });
      }
    }
    return out;
  };
  const name = (text) => `"${text.node.data.trim().slice(0, 40)}" (${text.element.className || text.element.tagName})`;
  const at = (box) => `${Math.round(box.left)},${Math.round(box.top + scrollY)}`;

  function overlaps() {
    const all = texts().sort((a, b) => a.top - b.top);
    const found = [];
    all.forEach((one, i) => {
      for (let j = i + 1; j < all.length && all[j].top < one.bottom; j += 1) {
        const two = all[j];
        if (two.node === one.node) continue;
        const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
        const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
        // Boxes of text are a little higher than its letters.
        if (wide > 1.5 && high > 3.5) found.push(`${name(one)} and ${name(two)} at ${at(two)}`);
      }
    });
    return found;
  }

  function sideways() {
    const found = [];
    const room = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > room) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
    for (const text of texts()) {
      if (text.element.closest(".sideways")) continue;
      if (text.right > room + 0.5 || text.left < -0.5) found.push(`${name(text)} reaches ${Math.round(text.right)} at ${at(text)}`);
    }
    return found;
  }

  // Colours, drawn by a canvas, because a style may say them in many ways.
  const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const colour = (text) => {
    if (!known.has(text)) {
      pixel.clearRect(0, 0, 1, 1);
      pixel.fillStyle = text;
      pixel.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
      known.set(text, [r, g, b, a / 255]);
    }
    return known.get(text);
  };
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const light = (rgb) => {
    const [r, g, b] = rgb.slice(0, 3).map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };

  function contrast() {
    const style = document.createElement("style");
    style.textContent = "* { pointer-events: auto !important; }";
    document.head.append(style);
    const found = [];
    const all = texts();
    const began = scrollY;
    let seen = 0;
    for (const text of all) {
      const y = (text.top + text.bottom) / 2 + began;
      const x = (text.left + text.right) / 2;
      scrollTo(0, y - innerHeight / 2);
      const stack = document.elementsFromPoint(x, y - scrollY);
      // Without the text's own element nothing is known of what lies below it: it is beside the window.
      const own = stack.findIndex((element) => element === text.element || text.element.contains(element));
      if (own < 0) continue;
      seen += 1;
      let ground = [255, 255, 255, 1];
      for (const element of stack.slice(own).reverse()) ground = over(colour(getComputedStyle(element).backgroundColor), ground);
      const ink = over(colour(getComputedStyle(text.element).color), ground);
      const [a, b] = [light(ink), light(ground)].sort((m, n) => n - m);
      const ratio = (a + 0.05) / (b + 0.05);
      if (ratio < 4.5) found.push(`${name(text)} has ${ratio.toFixed(2)} at ${at(text)}`);
    }
    style.remove();
    scrollTo(0, began);
    if (seen < all.length * 0.9) found.push(`only ${seen} of ${all.length} texts could be judged`);
    return [...new Set(found)];
  }

  // Text that a style hides altogether, but for what is named.
  function hidden(except) {
    const found = [];
    for (const element of document.querySelectorAll("main td, main th, main dd, main dt, main p, main h2, main h3, main summary, main figcaption")) {
      if (element.closest(except) || !element.textContent.trim()) continue;
      if (!visible(element) || element.getBoundingClientRect().height < 1) found.push(`${element.tagName} "${element.textContent.trim().slice(0, 40)}"`);
    }
    return found;
  }
  return { overlaps, sideways, contrast, hidden };
})();
0;
