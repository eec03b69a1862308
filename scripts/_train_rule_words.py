"""The words of the invented rules: clauses with their denials, conditions, times, groups, opposites, lists.

Words only. Clauses and conditions of one entry fit each other; every sentence is our own.
"""

from __future__ import annotations

CONDITIONS: tuple[tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str, str], ...]], ...] = (
    (  # workshop
        (
            ("members may fire the kiln", "members may not fire the kiln"),
            ("members may take clay home", "members may not take clay home"),
            ("members can use the lathe", "members cannot use the lathe"),
            ("the studio is open to members at night", "the studio is not open to members at night"),
            ("members may bring a friend", "members may not bring a friend"),
        ),
        (
            ("if a supervisor is present", "in the presence of a supervisor", "without a supervisor"),
            (
                "only after a safety course",
                "after they have taken a safety course",
                "without any safety course",
            ),
            (
                "provided that they sign the logbook",
                "once they have signed the logbook",
                "without signing the logbook",
            ),
            (
                "unless the studio is booked for a class",
                "when no class is booked",
                "while the studio is booked for a class",
            ),
        ),
    ),
    (  # shop
        (
            ("the shop takes goods back", "the shop does not take goods back"),
            ("customers get their money back", "customers do not get their money back"),
            ("the repair is free of charge", "the repair is not free of charge"),
            ("the shop pays the postage", "the shop does not pay the postage"),
            ("a damaged lamp is replaced", "a damaged lamp is not replaced"),
        ),
        (
            ("if the invoice is enclosed", "on production of the invoice", "when no invoice is enclosed"),
            ("only within the first fortnight", "during the first fortnight", "after the first month"),
            ("as long as the packaging is undamaged", "with undamaged packaging", "with torn packaging"),
            (
                "unless the item was made to order",
                "for items that were not made to order",
                "for items that were made to order",
            ),
        ),
    ),
    (  # pensions and benefits
        (
            ("the fund pays a bonus", "the fund does not pay a bonus"),
            ("widows receive half of the pension", "widows do not receive half of the pension"),
            ("the contribution is refunded", "the contribution is not refunded"),
            ("the allowance is doubled", "the allowance is not doubled"),
        ),
        (
            (
                "if the applicant has paid in for ten years",
                "to applicants who have paid in for ten years",
                "to applicants who have paid in for two years",
            ),
            ("only on written request", "when this is requested in writing", "without a written request"),
            (
                "provided that the form arrives before April",
                "when the form comes in by March",
                "when the form comes in in June",
            ),
            (
                "unless the board objects",
                "when the board has no objection",
                "against an objection of the board",
            ),
        ),
    ),
    (  # boats
        (
            ("visitors may hire a kayak", "visitors may not hire a kayak"),
            ("visitors can moor overnight", "visitors cannot moor overnight"),
            ("swimming in the cove is permitted", "swimming in the cove is not permitted"),
            ("children may sail alone", "children may not sail alone"),
            ("the pier is open to anglers", "the pier is not open to anglers"),
        ),
        (
            ("if the green flag is up", "under a green flag", "under a red flag"),
            ("only with a life jacket", "with a life jacket on", "without a life jacket"),
            ("unless a storm warning is out", "when there is no storm warning", "during a storm warning"),
            (
                "as long as the harbour master agrees",
                "with the agreement of the harbour master",
                "against the will of the harbour master",
            ),
        ),
    ),
    (  # archive
        (
            ("readers may photograph the maps", "readers may not photograph the maps"),
            ("the letters can be copied", "the letters cannot be copied"),
            ("the reading room may be used", "the reading room may not be used"),
            ("documents are sent by post", "documents are not sent by post"),
        ),
        (
            (
                "if the donor has consented",
                "with the consent of the donor",
                "without the consent of the donor",
            ),
            ("only with a reader's ticket", "on showing a reader's ticket", "without a reader's ticket"),
            ("provided that no flash is used", "without a flash", "with a flash"),
            ("unless they are on loan", "when they are not on loan", "while they are on loan"),
        ),
    ),
    (  # medicine
        (
            ("the drops can be given to infants", "the drops cannot be given to infants"),
            ("patients may drive", "patients may not drive"),
            ("the dose may be raised", "the dose may not be raised"),
            ("the bandage can be removed", "the bandage cannot be removed"),
            ("the ointment is paid for by the insurer", "the ointment is not paid for by the insurer"),
        ),
        (
            ("if a physician has agreed", "with a physician's agreement", "without asking a physician"),
            ("only after the third day", "from the fourth day on", "on the first day"),
            ("unless a fever occurs", "in the absence of fever", "in spite of a fever"),
            (
                "provided that the kidneys are healthy",
                "when the kidneys are healthy",
                "when the kidneys are damaged",
            ),
        ),
    ),
    (  # software
        (
            ("the plug-in loads remote files", "the plug-in does not load remote files"),
            ("the service restarts by itself", "the service does not restart by itself"),
            ("users can rename a workspace", "users cannot rename a workspace"),
            ("the editor stores drafts", "the editor does not store drafts"),
            ("the import skips empty rows", "the import does not skip empty rows"),
        ),
        (
            (
                "if the administrator has enabled this",
                "once the administrator has enabled this",
                "without the administrator enabling this",
            ),
            ("only when the debug switch is on", "with the debug switch on", "with the debug switch off"),
            ("unless the disk is full", "as long as the disk has space", "when the disk is full"),
            ("provided that a key has been set", "after a key has been set", "without any key"),
        ),
    ),
    (  # work
        (
            ("interns may work from abroad", "interns may not work from abroad"),
            ("travel costs are reimbursed", "travel costs are not reimbursed"),
            ("overtime can be taken as leave", "overtime cannot be taken as leave"),
            ("staff may keep the laptop", "staff may not keep the laptop"),
            ("the firm pays for language lessons", "the firm does not pay for language lessons"),
        ),
        (
            (
                "if the department head has approved it",
                "with the department head's approval",
                "without the department head's approval",
            ),
            ("only after the trial period", "once the trial period is over", "during the trial period"),
            (
                "unless the works council disagrees",
                "when the works council does not disagree",
                "against the vote of the works council",
            ),
            ("as long as the budget allows it", "within the budget", "when the budget is used up"),
        ),
    ),
    (  # allotments and farms
        (
            ("tenants may keep bees", "tenants may not keep bees"),
            ("the well may be used for watering", "the well may not be used for watering"),
            ("bonfires are allowed", "bonfires are not allowed"),
            ("sheep graze on the dyke", "sheep do not graze on the dyke"),
            ("the barn is let for weddings", "the barn is not let for weddings"),
        ),
        (
            (
                "if all neighbours have agreed",
                "with the agreement of all neighbours",
                "against the wishes of a neighbour",
            ),
            (
                "only with a permit from the association",
                "with a permit from the association",
                "without a permit",
            ),
            ("unless the ground is dry", "on wet ground", "on dry ground"),
            ("provided that the fee has been paid", "once the fee has been paid", "without paying the fee"),
        ),
    ),
    (  # culture
        (
            ("the choir sings in the crypt", "the choir does not sing in the crypt"),
            ("latecomers are let in", "latecomers are not let in"),
            ("visitors may touch the sculptures", "visitors may not touch the sculptures"),
            ("the tower can be climbed", "the tower cannot be climbed"),
            ("tickets are exchanged", "tickets are not exchanged"),
        ),
        (
            ("if a guide goes along", "with a guide", "without a guide"),
            ("only during the interval", "in the interval", "in the middle of an act"),
            ("unless the house is sold out", "when the house is not sold out", "when the house is sold out"),
            (
                "provided that at least ten people sign up",
                "when ten or more people sign up",
                "when only three people sign up",
            ),
        ),
    ),
)
"""Clauses with their denials, and (condition, the condition met, the condition broken) that fit them."""

TIMES = (
    "on Sundays", "in August", "on Christmas Eve", "during the school holidays", "at weekends", "on market days",
    "in the week before Easter", "on Wednesdays", "in winter", "during the night", "on the last Friday of the month",
    "in the rainy season", "on New Year's Day", "while exams are on", "in July", "on Monday mornings",
)  # fmt: skip

GROUPS = (
    ("villages", "village", "have a fire brigade", "have no fire brigade"), ("lecturers", "lecturer", "speak Polish", "speak no Polish"),
    ("orchards", "orchard", "were sprayed", "were not sprayed"), ("tenants", "tenant", "own a car", "own no car"),
    ("windmills", "windmill", "still turn", "no longer turn"), ("applicants", "applicant", "passed the test", "failed the test"),
    ("reactors", "reactor", "are in operation", "are out of operation"), ("paintings", "painting", "were sold", "were not sold"),
    ("nurses", "nurse", "work at night", "never work at night"), ("parishes", "parish", "keep registers", "keep no registers"),
    ("chargers", "charger", "accept cards", "accept no cards"), ("goats", "goat", "were vaccinated", "were not vaccinated"),
    ("delegates", "delegate", "voted in favour", "did not vote in favour"), ("sensors", "sensor", "send data", "send no data"),
    ("trams", "tram", "have a ramp", "have no ramp"), ("invoices", "invoice", "were paid late", "were paid on time"),
    ("beaches", "beach", "have lifeguards", "have no lifeguards"), ("orphanages", "orphanage", "were inspected", "were not inspected"),
)  # fmt: skip

DENIALS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("The cellar", ("{s} is shut", "{s} is not open", "{s} is closed"), ("{s} is open", "{s} can be entered at present")),
    ("Membership", ("{s} costs nothing", "{s} is free of charge", "There is no fee for membership", "No money is asked for membership"), ("{s} has to be paid for", "A fee is charged for membership")),
    ("Smoking in the courtyard", ("{s} is forbidden", "{s} is not allowed", "{s} is prohibited", "{s} is against the rules"), ("{s} is allowed", "{s} is permitted")),
    ("A helmet", ("{s} is compulsory", "{s} must be worn", "Nobody may go without a helmet", "Wearing a helmet is required"), ("{s} is optional", "{s} need not be worn")),
    ("The soup", ("{s} contains no nuts", "{s} is free of nuts", "There are no nuts in the soup", "{s} is made without nuts"), ("{s} contains nuts", "There are nuts in the soup")),
    ("The spare key", ("{s} is missing", "{s} is not there", "{s} cannot be found"), ("{s} is in its place", "{s} has been found")),
    ("The model", ("{s} is sold out", "{s} is no longer in stock", "{s} is not available any more", "{s} cannot be bought at present"), ("{s} is in stock", "{s} is available")),
    ("The witness", ("{s} refused to speak", "{s} said nothing", "{s} did not talk", "{s} remained silent"), ("{s} gave a full account", "{s} talked freely")),
    ("The engine", ("{s} does not work", "{s} is out of order", "{s} is broken", "{s} has stopped working"), ("{s} works", "{s} is running well")),
    ("The bridge", ("{s} is safe", "{s} is not dangerous", "There is no danger in using the bridge"), ("{s} is dangerous", "{s} is unsafe")),
    ("The report", ("{s} lacks an index", "{s} has no index", "{s} comes without an index", "There is no index in the report"), ("{s} has an index", "There is an index in the report")),
    ("Insurance", ("{s} is included in the price", "{s} comes with the price", "There is no extra charge for insurance"), ("{s} is not included in the price", "{s} costs extra")),
    ("The appeal", ("{s} was rejected", "{s} was turned down", "{s} was not successful", "{s} failed"), ("{s} was successful", "{s} was granted")),
    ("The two brothers", ("{s} disagree", "{s} are not of one mind", "{s} do not agree"), ("{s} agree", "{s} are of the same opinion")),
    ("The vaccine", ("{s} prevents infection", "{s} does not let an infection happen", "With the vaccine, no infection occurs"), ("{s} does not prevent infection", "{s} leaves people open to infection")),
    ("The town", ("{s} has no railway station", "{s} lacks a railway station", "There is no railway station in the town", "No trains stop in the town"), ("{s} has a railway station", "There is a railway station in the town")),
    ("The defendant", ("{s} denies having taken the ring", "{s} says that he did not take the ring"), ("{s} admits having taken the ring", "{s} confesses to taking the ring")),
    ("The contract", ("{s} cannot be cancelled", "{s} is binding until its end", "There is no way to cancel the contract"), ("{s} can be cancelled", "{s} may be ended at any time")),
    ("The valley", ("{s} is uninhabited", "Nobody lives in the valley", "{s} has no inhabitants"), ("People live in the valley", "{s} is inhabited")),
    ("The driver", ("{s} was unhurt", "{s} was not injured", "{s} escaped without injury"), ("{s} was injured", "{s} was hurt")),
    ("The test", ("{s} was negative", "{s} did not find the virus", "{s} found no virus"), ("{s} was positive", "{s} found the virus")),
    ("The tablet", ("{s} must not be crushed", "{s} has to be swallowed whole", "Crushing the tablet is not allowed"), ("{s} may be crushed", "{s} can be ground to powder")),
    ("The clock", ("{s} is slow", "{s} does not keep up with the time", "{s} runs behind"), ("{s} is fast", "{s} runs ahead")),
    ("The password", ("{s} never expires", "{s} does not expire", "{s} remains valid for ever"), ("{s} expires after a year", "{s} has to be renewed")),
    ("The film", ("{s} bored the critics", "{s} did not interest the critics", "The critics found the film dull"), ("{s} thrilled the critics", "The critics found the film gripping")),
    ("The lake", ("{s} freezes every winter", "There is no winter without ice on the lake", "In each winter the lake is covered with ice"), ("{s} never freezes", "{s} stays free of ice")),
    ("The firm", ("{s} made a loss", "{s} was not profitable", "{s} earned less than it spent"), ("{s} made a profit", "{s} was profitable")),
    ("The deadline", ("{s} has passed", "{s} is over", "It is too late for the deadline"), ("{s} has not yet passed", "{s} is still ahead")),
    ("The backup", ("{s} does not include pictures", "{s} leaves pictures out", "Pictures are not part of the backup", "{s} is made without pictures"), ("{s} includes pictures", "Pictures are part of the backup")),
    ("The child", ("{s} is too young to vote", "{s} may not vote yet", "{s} is not old enough to vote"), ("{s} is old enough to vote", "{s} may vote")),
)  # fmt: skip
"""(thing, sentences that say the same, sentences that say the opposite)."""

PLACES_WITHIN = (
    (("the Mistral bicycle", "the Bora bicycle", "the Sirocco bicycle", "the Zephyr bicycle"), "class", "may be taken on the train", "may not be taken on the train"),
    (("Dr Hollis", "Nurse Abbot", "Dr Castellan", "Nurse Wren"), "team", "is on duty at Easter", "is off duty at Easter"),
    (("the copper mug", "the tin plate", "the brass bell", "the iron pot"), "crate", "was lost in the flood", "survived the flood"),
    (("the Juniper account", "the Acacia account", "the Hazel account", "the Laurel account"), "tier", "pays no yearly charge", "pays a yearly charge"),
    (("the parser", "the scheduler", "the mailer", "the indexer"), "module group", "is rebuilt every night", "is never rebuilt at night"),
    (("the oboe", "the viola", "the harp", "the bassoon"), "room", "will be auctioned in June", "will not be auctioned in June"),
    (("Sunnybank farm", "Hollow farm", "Ridge farm", "Lower farm"), "zone", "must report its water use", "need not report its water use"),
    (("the blue form", "the white form", "the pink form", "the green form"), "category", "has to be signed by a notary", "needs no notary"),
)  # fmt: skip

PARTS = (
    ("The kit contains", ("a compass", "a whistle", "a blanket", "a knife", "matches", "bandages", "a torch")),
    ("The course treats", ("soil", "drainage", "pruning", "pests", "grafting", "compost")),
    ("The museum shows", ("coins", "looms", "clocks", "fossils", "sledges", "masks")),
    ("The licence covers", ("editing", "printing", "resale", "translation", "broadcasting")),
    ("The menu offers", ("trout", "dumplings", "lentils", "goulash", "sorbet", "cheese")),
    ("The insurance pays for", ("theft", "hail", "fire", "floods", "broken glass", "lightning")),
    ("The ship calls at", ("Bergen", "Gdynia", "Riga", "Aarhus", "Ghent", "Leeds")),
    ("The application needs", ("a photograph", "a birth certificate", "two references", "a medical report", "a bank statement")),
    ("The exporter writes", ("tables", "charts", "footnotes", "bookmarks", "thumbnails")),
)  # fmt: skip
