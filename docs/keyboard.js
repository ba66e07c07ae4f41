// What a chapter needs for readers without a mouse or without eyes: wide code and tables scroll by keyboard, and an empty corner of a table
// is a cell, which a reader of the screen passes over, not a head without words.
for (const wide of document.querySelectorAll("main pre code, main .table-wrapper, main .scroll")) {
  wide.tabIndex = 0;
}
for (const corner of document.querySelectorAll("main th")) {
  if (corner.textContent.trim() === "") {
    corner.replaceWith(document.createElement("td"));
  }
}
