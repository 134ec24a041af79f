"""Two labels and ten notes: label propagation to similar notes, and co-training with two views.

Notes have a title and a body. Propagation uses all their words; co-training uses titles and bodies
as separate views, and records which of the two gave each label, and when.
"""

from __future__ import annotations

import softcount as sc

NOTES = [
    ("bread", "flour and water, then salt; let the dough rise"),
    ("roof", "two tiles are broken; ask for a ladder"),
    ("bread again", "a wetter dough, in a hot oven"),
    ("the roof, part two", "new tiles, nails and a hammer"),
    ("rolls", "dough as before, ten minutes in the oven"),
    ("the shed", "nails are rusty, the door wants a hammer"),
    ("pizza", "the oven as hot as it goes; tomatoes"),
    ("fence", "a hammer, two boards"),
    ("soup", "tomatoes and salt, for an hour"),
    ("gate", "boards again, and paint"),
]
LABELS = ["kitchen", "repairs", *[None] * 8]

if __name__ == "__main__":
    texts = [f"{title}: {body}" for title, body in NOTES]
    spread = sc.labels.LabelPropagation(n_neighbors=3).fit(texts, LABELS)
    confidences = spread.label_distributions_.max(axis=1)

    notes = [{"title": title, "body": body} for title, body in NOTES]
    taught = sc.labels.CoTraining(["title", "body"], per_class=1).fit(notes, LABELS)

    print("title               propagation      co-training      by, in round")
    rows = zip(NOTES, spread.transduction_, confidences, taught.transduction_, strict=True)
    for number, ((title, _), propagated, confidence, co_trained) in enumerate(rows):
        events = taught.history_.of(number)
        who = f"{events[0].view}, {events[0].round}" if events else "nobody"
        print(f"{title:19} {propagated:8} {confidence:.2f}    {co_trained:16} {who}")
