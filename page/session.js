"use strict";
// Search in a page of a session. Without scripts the page is as readable; only this field is missing.
(() => {
	const bar = document.querySelector(".search");
	const field = bar.querySelector("input");
	const count = bar.querySelector("output");
	const items = Array.from(document.querySelectorAll("main .item"));
	const folded = Array.from(document.querySelectorAll("main details"));
	const wasOpen = new Map(folded.map((block) => [block, block.open]));
	const texts = items.map((item) => item.textContent.toLowerCase());

	function search() {
		const wanted = field.value.trim().toLowerCase();
		let found = 0;
		items.forEach((item, at) => {
			const fits = wanted === "" || texts[at].includes(wanted);
			item.classList.toggle("apart", !fits);
			if (item.tagName === "DETAILS")
				item.open = wanted === "" ? wasOpen.get(item) : fits;
			found += fits ? 1 : 0;
		});
		count.value = wanted === "" ? "" : `${found} of ${items.length}`;
	}

	// An address that ends in #find=WORDS is a search.
	function follow() {
		const found = /^#find=(.*)$/.exec(location.hash);
		if (found) {
			try {
				field.value = decodeURIComponent(found[1]);
			} catch {
				field.value = found[1];
			}
			search();
		}
	}

	bar.hidden = false;
	field.addEventListener("input", search);
	addEventListener("hashchange", follow);
	follow();
	bar.querySelector("button").addEventListener("click", () => {
		const open = !folded.every((block) => block.open);
		folded.forEach((block) => { block.open = open; });
	});
	document.addEventListener("keydown", (event) => {
		if (event.key === "/" && event.target !== field) {
			event.preventDefault();
			field.focus();
		} else if (event.key === "Escape" && event.target === field) {
			field.value = "";
			search();
		}
	});
})();
