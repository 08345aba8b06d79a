/* The whole page, in the order in which it is read. */

function opening() {
  const tiles = document.getElementById("tiles"),
    add = (value, name) => tiles.append(make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  document.getElementById("summary").textContent = DATA.summary;
  if (DATA.objects) add(count(DATA.objects.rows), "objects");
  add(count(DATA.features.length), `features in ${plural(DATA.groups.length, "group")}`);
  if (DATA.gaps)
    add(
      percent(
        DATA.gaps.counts.flat().reduce((a, b) => a + b, 0) / (DATA.gaps.rows * DATA.features.length || 1),
      ),
      "of the values are missing",
    );
  if (OBJECTS && OBJECTS.classes.length) add(count(OBJECTS.classes.length), "classes");
  if (OBJECTS && OBJECTS.outlier)
    add(percent(OBJECTS.outlier.reduce((a, b) => a + b, 0) / (OBJECTS.n || 1), 1), "unlike the training set");
  add(
    `${DATA.engine.bounds.length - 1} × ${Math.round(ENGINE.c / (DATA.engine.bounds.length - 1))}`,
    "mixtures × components",
  );
}

function provenanceSection() {
  const place = section("provenance", "Provenance");
  place.append(para("How the model, the results and this page were made, in enough detail to reproduce them."));
  for (const { title, facts } of DATA.provenance) {
    const list = make("dl.facts");
    for (const [name, text] of facts)
      list.append(make("dt", {}, name), make("dd", {}, name === "command" ? code(text) : text));
    place.append(make("h3", {}, title), list);
  }
}

function themes() {
  const button = document.getElementById("theme"),
    root = document.documentElement,
    dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const set = () => {
    const name = chosen || (dark.matches ? "dark" : "light");
    root.dataset.theme = name;
    button.textContent = name === "dark" ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${name === "dark" ? "light" : "dark"} colors`);
    for (const paint of REPAINT) paint();
  };
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    set();
  });
  dark.addEventListener("change", set);
  addEventListener("beforeprint", () => {
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", set);
  set();
}

/* The navigation highlights the section being read. */
function markReading() {
  const links = new Map(
    [...document.querySelectorAll("#sections a")].map((link) => [link.hash.slice(1), link]),
  );
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries)
        if (entry.isIntersecting) {
          for (const link of links.values()) link.removeAttribute("aria-current");
          links.get(entry.target.id)?.setAttribute("aria-current", "true");
        }
    },
    { rootMargin: "-20% 0px -70% 0px" },
  );
  for (const place of document.querySelectorAll("main > section")) watcher.observe(place);
}

const ENGINE = new Engine(DATA.engine);
themes();
opening();
gapsSection();
networkSection();
whatifSection();
pairSection();
fillingSection();
classesSection();
importanceSection();
objectsSection();
skySection();
provenanceSection();
markReading();
watchAddress();
