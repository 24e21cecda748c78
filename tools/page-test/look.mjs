// What a person needs of a page: controls that the keyboard reaches and shows, names for all of them, text that can
// be told from what is behind it.

/** In the page: every control, numbered. A group of radio buttons is one stop. */
export const controls = () => {
  const all = [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")];
  const stops = all.filter((one) => one.type !== "radio" || one.checked);
  return stops.map((one, number) => {
    one.dataset.stop = String(number);
    return `${one.tagName.toLowerCase()} ${(one.textContent || one.name || "").trim().slice(0, 30)}`;
  });
};

/** Presses Tab until nothing new is reached: what was missed, and what did not show that it has the focus. */
export const reached = async (page, meant) => {
  const found = new Set();
  const unseen = [];
  await page.evaluate(() => document.activeElement?.blur());
  for (let turn = 0; turn < meant.length + 5; turn += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const one = document.activeElement;
      const style = getComputedStyle(one);
      const box = one.getBoundingClientRect();
      const seen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 && box.width > 0 && box.right > 0;
      return { number: one.dataset?.stop, seen };
    });
    if (stop.number === undefined) continue;
    found.add(Number(stop.number));
    if (!stop.seen) unseen.push(meant[stop.number]);
  }
  return { missed: meant.filter((_, number) => !found.has(number)), unseen };
};

/** Controls without a name, as a screen reader would meet them. */
export const names = async (page) => {
  const roles = new Set(["button", "link", "textbox", "combobox", "radio", "checkbox", "searchbox", "navigation", "img", "DisclosureTriangle"]);
  const nameless = [];
  const walk = (node) => {
    if (roles.has(node.role) && !node.name?.trim()) nameless.push({ role: node.role, value: node.value });
    node.children?.forEach(walk);
  };
  const tree = await page.accessibility.snapshot({ interestingOnly: false });
  walk(tree);
  return nameless;
};

/** In the page: texts whose contrast is under 4.5 to 1. */
export const contrast = () => {
  const numbers = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => {
    const part = (value) => (value / 255 <= 0.04045 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || (color.length === 4 && color[3] > 0.99)) return color;
    }
    return matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18] : [255, 255, 255];
  };
  const faint = [];
  for (const one of document.querySelectorAll("body *:not(svg *):not(option)")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || one.closest("svg") || one.getClientRects().length === 0) continue;
    const [a, b] = [light(numbers(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push(`${one.tagName}.${one.className}: ${one.textContent.trim().slice(0, 30)}`);
  }
  return faint;
};

/** In the page: lines of a comparison of which a part is cut off, or covered by the next one. */
export const covered = () =>
  [...document.querySelectorAll(".diff td")]
    .filter((one) => one.scrollHeight > one.clientHeight + 2 || one.scrollWidth > one.clientWidth + 2)
    .map((one) => `${one.clientHeight} of ${one.scrollHeight} pixels: ${one.textContent.slice(0, 30)}`);

/** In the page: words of a usual length that do not stand on one line. */
export const broken = () => {
  const found = [];
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.parentElement.closest("svg, style")) continue;
    for (const word of node.data.matchAll(/\S+/g)) {
      if (word[0].length > 14) continue;
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      const tops = [...range.getClientRects()].map((box) => Math.round(box.top));
      if (new Set(tops).size > 1) found.push(word[0]);
    }
  }
  return found;
};
