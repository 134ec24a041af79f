"use strict";
(() => {
  const data = JSON.parse(document.getElementById("topic-data").textContent);
  const explorer = document.querySelector(".explorer");
  const list = document.querySelector(".topics");
  const map = document.querySelector(".map");
  const status = document.querySelector(".status");
  const dial = document.getElementById("relevance");
  const order = [...list.querySelectorAll("a")].map((tab) => number(tab));
  const tabs = byTopic(".topics a");
  const circles = byTopic(".map a");
  const curves = byTopic(".times a");
  const panels = order.map((k) => document.getElementById(`topic-${k}`));
  const panelOf = new Map(order.map((k, i) => [k, panels[i]]));
  const resting = `${status.textContent} Dashed: nearest to the chosen topic.`;
  let chosen = null;
  let typed = "";
  let typedAt = 0;

  function number(link) {
    return Number(link.getAttribute("href").slice("#topic-".length));
  }

  function byTopic(selector) {
    return new Map([...document.querySelectorAll(selector)].map((link) => [number(link), link]));
  }

  // words: logarithms are whole thousandths, ranked as the page's maker ranks them
  function topWords(k, tenths) {
    const logs = data.logs[k];
    const rows = data.places[k].map((word, i) => {
      const relevance = (10 - tenths) * data.rarity[word] - 10 * logs[i];
      return { word, log: logs[i], relevance };
    });
    rows.sort((a, b) => b.relevance - a.relevance || a.log - b.log || a.word - b.word);
    return rows.slice(0, data.n);
  }

  function part(tag, css, text) {
    const element = document.createElement(tag);
    if (css) element.className = css;
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function showWords(k) {
    const rows = topWords(k, Number(dial.value));
    const own = rows.map((row) => data.weights[k] * Math.exp(-row.log / 1000));
    const all = rows.map((row, i) => Math.max(own[i], Math.exp(-data.rarity[row.word] / 1000)));
    const full = Math.max(...all, 1e-300);
    const words = panelOf.get(k).querySelector(".words");
    const items = rows.map((row, i) => {
      const item = part("li");
      item.dataset.word = row.word;
      item.tabIndex = i === 0 ? 0 : -1;
      item.style.setProperty("--a", ((100 * all[i]) / full).toFixed(1));
      item.style.setProperty("--b", ((100 * own[i]) / full).toFixed(1));
      const share = Math.round((100 * own[i]) / all[i]);
      item.append(
        part("bdi", "", data.words[row.word]),
        part("b"),
        part("i", "", (100 * Math.exp(-row.log / 1000)).toFixed(2)),
        part("i", "", String(share)),
      );
      return item;
    });
    words.replaceChildren(words.querySelector(".head"), ...items);
  }

  // the map
  function topicsOf(word) {
    const flat = data.spread[word]; // k, per cent, k, per cent …
    return flat.flatMap((k, i) => (i % 2 ? [] : [[k, flat[i + 1]]]));
  }

  function sizeByWord(word) {
    const topics = topicsOf(word);
    const share = new Map(topics);
    map.classList.add("by-word");
    for (const [k, link] of circles) {
      const p = (share.get(k) || 0) / 100;
      link.classList.toggle("has", p > 0);
      link.querySelector("circle").setAttribute("r", data.largest * Math.sqrt(p));
    }
    const told = topics.slice(0, 5).map(([k, p]) => `topic ${k}: ${p} %`);
    status.textContent = `“\u2068${data.words[word]}\u2069” is in ${told.join(", ")}`;
  }

  function sizeByTopic() {
    map.classList.remove("by-word");
    for (const link of circles.values()) {
      const circle = link.querySelector("circle");
      circle.setAttribute("r", circle.dataset.r);
    }
    status.textContent = resting;
  }

  // selection
  function select(k, focus) {
    if (!panelOf.has(k)) return;
    const near = new Set([...panelOf.get(k).querySelectorAll(".near a")].map(number));
    for (const links of [tabs, circles, curves]) {
      for (const [other, link] of links) {
        link.classList.toggle("selected", other === k);
        link.classList.toggle("near", links === circles && near.has(other));
      }
    }
    for (const [other, tab] of tabs) {
      tab.setAttribute("aria-selected", String(other === k));
      tab.tabIndex = other === k ? 0 : -1;
      panelOf.get(other).classList.toggle("selected", other === k);
    }
    chosen = k;
    showWords(k);
    sizeByTopic();
    bringIntoList(tabs.get(k));
    if (focus) tabs.get(k).focus({ preventScroll: true });
    try {
      // no element has this name, so that the page stays where it is
      history.replaceState(null, "", `#topic=${k}`);
    } catch {
      // a page inside another one may not have an address
    }
  }

  function bringIntoList(tab) {
    const [frame, row] = [list.getBoundingClientRect(), tab.getBoundingClientRect()];
    if (row.top < frame.top) list.scrollTop -= frame.top - row.top;
    if (row.bottom > frame.bottom) list.scrollTop += row.bottom - frame.bottom;
  }

  function step(by, focus) {
    const at = order.indexOf(chosen) + by;
    select(order[Math.min(Math.max(at, 0), order.length - 1)], focus);
  }

  // keys
  function inList(event) {
    const ways = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };
    ways.Home = -order.length;
    ways.End = order.length;
    if (!(event.key in ways)) return false;
    step(ways[event.key], true);
    return true;
  }

  function inWords(event) {
    const item = event.target.closest(".words li");
    const next = { ArrowUp: item.previousElementSibling, ArrowDown: item.nextElementSibling };
    const to = next[event.key];
    if (!to || !to.dataset.word) return event.key in next;
    item.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
    return true;
  }

  function anywhere(event) {
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      step(event.key === "ArrowLeft" ? -1 : 1, false);
      return true;
    }
    if (!/^[0-9]$/.test(event.key)) return false;
    const now = Date.now();
    typed = now - typedAt < 1000 ? typed + event.key : event.key;
    typedAt = now;
    if (!panelOf.has(Number(typed))) typed = event.key;
    select(Number(typed), false);
    return true;
  }

  function onKey(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const target = event.target instanceof Element ? event.target : document.body;
    if (target.closest("input, summary, pre")) return;
    const done =
      (target.closest(".topics") && inList(event)) ||
      (target.closest(".words li") && inWords(event)) ||
      anywhere(event);
    if (done) event.preventDefault();
  }

  // what is a list of links without a script becomes tabs and their panels
  function dress() {
    document.documentElement.classList.add("js");
    document.querySelector(".dial").hidden = false;
    document.querySelector(".chosen .scale").append(" Point at a word: the map shows its topics.");
    list.setAttribute("role", "tablist");
    list.setAttribute("aria-orientation", "vertical");
    list.setAttribute("aria-label", "topics, the largest first");
    for (const [k, tab] of tabs) {
      tab.parentElement.setAttribute("role", "presentation");
      tab.setAttribute("role", "tab");
      tab.setAttribute("aria-controls", `topic-${k}`);
      tab.id = `tab-${k}`;
      const panel = panelOf.get(k);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", tab.id);
    }
    for (const link of circles.values()) link.tabIndex = -1; // the list has the same links
  }

  function wordOf(event) {
    const item = event.target instanceof Element && event.target.closest(".words li");
    return item && item.dataset.word !== undefined ? Number(item.dataset.word) : null;
  }

  function listen() {
    document.addEventListener("keydown", onKey);
    document.addEventListener("click", (event) => {
      const link = event.target.closest('a[href^="#topic-"]');
      if (!link) return;
      event.preventDefault();
      select(number(link), Boolean(link.closest(".topics")));
      const hidden = explorer.getBoundingClientRect().bottom < 60;
      if (link.closest(".times") || hidden) explorer.scrollIntoView();
    });
    for (const [start, end] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
      explorer.addEventListener(start, (event) => {
        const word = wordOf(event);
        if (word !== null) sizeByWord(word);
      });
      explorer.addEventListener(end, (event) => {
        if (wordOf(event) !== null) sizeByTopic();
      });
    }
    dial.addEventListener("input", () => {
      const text = (Number(dial.value) / 10).toFixed(1);
      document.getElementById("relevance-value").textContent = text;
      dial.setAttribute("aria-valuetext", text);
      showWords(chosen);
    });
    window.addEventListener("hashchange", () => select(asked(), false));
  }

  function asked() {
    const found = /^#topic[-=]([0-9]+)$/.exec(location.hash);
    return found && panelOf.has(Number(found[1])) ? Number(found[1]) : (chosen ?? order[0]);
  }

  dress();
  listen();
  select(asked(), false);
})();
