// What only a night's page adds: moments in the reader's own zone.
(() => {
  for (const moment of tools.all("time[datetime]")) {
    const at = new Date(moment.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    moment.title = at.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });
  }
})();
