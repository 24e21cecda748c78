// The live view of the timeline. All else works without it.
"use strict";
(() => {
  const table = document.querySelector("table[data-live]");
  const rows = document.getElementById("rows");
  const news = document.getElementById("news");
  if (!table || !rows || !window.EventSource) return;
  const newest = () => {
    const first = rows.querySelector("tr[data-index]");
    return first ? Number(first.dataset.index) + 1 : 0;
  };
  let busy = false;
  const refresh = async (records) => {
    if (busy || records <= newest()) return;
    busy = true;
    try {
      const asked = new URLSearchParams(window.location.search);
      asked.set("from", String(newest()));
      const answer = await fetch("/timeline/rows?" + asked.toString(), { credentials: "same-origin" });
      if (!answer.ok) return;
      const part = new DOMParser().parseFromString("<table><tbody>" + (await answer.text()) + "</tbody></table>", "text/html");
      const fresh = Array.from(part.querySelectorAll("tr[data-index]")).reverse();
      for (const row of fresh) {
        row.classList.add("fresh");
        rows.prepend(document.adoptNode(row));
        setTimeout(() => row.classList.remove("fresh"), 1500);
      }
      while (rows.children.length > 500) rows.lastElementChild.remove();
      if (fresh.length) news.textContent = fresh.length + " new, " + new Date().toLocaleTimeString();
    } finally {
      busy = false;
    }
  };
  const source = new EventSource("/live");
  source.onmessage = (event) => refresh(Number(event.data));
  source.onerror = () => { news.textContent = "The live view is interrupted; load the page again for news."; };
  source.onopen = () => { news.textContent = "Live."; };
})();
