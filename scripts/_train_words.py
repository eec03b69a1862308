"""The words of the invented cases: kinds of things with their attributes, names of people and places, and openers.

A template names the thing as {s} and its value as {v}; all templates of an attribute say the same. Words only.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Attribute:
    """What things of a kind have: a header for tables, sentences that all say the same, and the kind of value."""

    header: str
    templates: tuple[str, ...]
    kind: str
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    noun: str = ""
    """What is counted, where sums and limits make sense."""
    more: str = ""
    """Key of MORE_AND_LESS, where two can be compared."""


@dataclass(frozen=True, slots=True)
class Domain:
    """A kind of thing: the header of its column, how it is named, and what it has."""

    kind: str
    names: tuple[str, ...]
    pattern: str
    attributes: tuple[Attribute, ...]


MORE_AND_LESS = {
    "have": ("{a} has more {n} than {b}.", "{a} has fewer {n} than {b}."),
    "long": ("{a} takes longer than {b}.", "{a} is over sooner than {b}."),
    "old": ("{a} came after {b}.", "{a} came before {b}."),
}

PEOPLE = (
    "Ingrid Solberg", "Tomasz Wilk", "Amara Okafor", "Luis Ferrán", "Priya Raman", "Hanna Virtanen", "Oskar Lindqvist",
    "Mei Tanaka", "Rashid Haddad", "Claire Dubois", "Goran Petrov", "Fatima Zahra", "Declan Byrne", "Yusuf Demir",
    "Elena Moretti", "Jonas Weber", "Sipho Dlamini", "Carmen Ortiz", "Anil Deshpande", "Nora Kelly", "Pavel Novak",
    "Grace Mwangi", "Henrik Dahl", "Lucia Benedetti", "Samuel Adeyemi", "Vera Ivanova", "Omar Farouk", "Beatriz Lima",
    "Kwame Boateng", "Astrid Holm", "Marek Zielinski", "Leila Hosseini", "Theo Papadakis", "Ruth Abramson", "Ken Ito",
)  # fmt: skip
PLACES = (
    "Trondheim", "Lublin", "Ibadan", "Málaga", "Madurai", "Tampere", "Uppsala", "Nagoya", "Amman", "Lyon", "Plovdiv",
    "Fez", "Galway", "Izmir", "Bologna", "Kassel", "Durban", "Rosario", "Pune", "Cardiff", "Brno", "Mombasa", "Aarhus",
    "Verona", "Accra", "Tartu", "Halifax", "Ghent", "Porto Alegre", "Sapporo", "Kumasi", "Stavanger", "Gdynia", "Leeds",
    "Utrecht", "Graz", "Winnipeg", "Adelaide", "Tucson", "Nantes", "Bergen", "Zagreb", "Kochi", "Dundee", "Riga",
)  # fmt: skip
OPENERS = (
    "An overview follows.", "The figures below were checked last week.", "See the notes for details.", "Overview:",
    "What our members ask most often:", "Last updated by the records office.", "The following is taken from the register.",
    "Details may be requested by post.", "This page is for reference.", "Frequently asked questions.",
)  # fmt: skip


def _a(header: str, templates: str, kind: str, low: int = 0, high: int = 0, **more: object) -> Attribute:
    return Attribute(header, tuple(templates.split(" / ")), kind, low, high, **more)  # type: ignore[arg-type]


DOMAINS: tuple[Domain, ...] = (
    Domain("Vessel", ("Solveig", "Kestrel", "Aurelia", "Nordlys", "Petrel", "Ondine", "Marisol", "Thetis", "Calypso", "Wayfarer"), "the {n}", (
        _a("Crew", "{s} sails with a crew of {v} / {s} has {v} crew members / The crew of {s} numbers {v}", "count", 4, 60, noun="crew members", more="have"),
        _a("Launched", "{s} was launched in {v} / the launch of {s} took place in {v}", "year"),
        _a("Home port", "{s} has its home port in {v} / the home port of {s} is {v} / {s} is based in {v}", "place"),
        _a("Captain", "{s} is commanded by {v} / {v} is the captain of {s} / {v} commands {s}", "person"),
        _a("Length", "{s} is {v} long / the length of {s} is {v} / {s} measures {v} from bow to stern", "measure", choices=("m", "ft")),
        _a("Cabins", "{s} has {v} cabins / there are {v} cabins aboard {s} / {s} offers {v} cabins", "count", 8, 240, noun="cabins", more="have"),
    )),
    Domain("Plan", ("Cobalt", "Saffron", "Willow", "Summit", "Harbour", "Comet", "Linden", "Prism", "Meadow", "Orbit"), "the {n} plan", (
        _a("Monthly fee", "{s} costs {v} a month / you pay {v} per month for {s} / the monthly fee of {s} is {v}", "money", 5, 120),
        _a("Data", "{s} comes with {v} of data / the data allowance of {s} is {v} / {s} includes {v} of data", "measure", choices=("GB", "TB")),
        _a("Devices", "{s} covers {v} devices / with {s} you can connect {v} devices / up to {v} devices may be connected with {s}", "count", 2, 20, noun="devices", more="have"),
        _a("Contract", "{s} runs for {v} / the contract of {s} lasts {v} / with {s} you are bound for {v}", "measure", choices=("years",)),
        _a("Support", "{s} includes support by {v} / support for {s} is given by {v} / customers of {s} get help by {v}", "choice", choices=("phone", "e-mail", "live chat", "letter")),
    )),
    Domain("Campsite", ("Birkenau Lake", "Pinewood", "Stony Bay", "Larchfield", "Otter Creek", "Sandhill", "Heron Point", "Fernside"), "{n} campsite", (
        _a("Pitches", "{s} has {v} pitches / there are {v} pitches at {s} / {s} offers {v} pitches", "count", 12, 400, noun="pitches", more="have"),
        _a("Fee", "a night at {s} costs {v} / {s} charges {v} per night / the fee for a night at {s} is {v}", "money", 8, 70),
        _a("Warden", "{s} is run by {v} / {v} is the warden of {s} / the warden of {s} is {v}", "person"),
        _a("Distance to the village", "{s} is {v} from the village / from {s} to the village it is {v} / the village lies {v} from {s}", "measure", choices=("km", "m")),
        _a("Gate closes", "the gate of {s} closes at {v} / at {s} the gate is shut at {v} / {s} shuts its gate at {v}", "clock"),
    )),
    Domain("Medicine", ("Relvanil", "Dormexa", "Cartiplen", "Novifer", "Tusselan", "Bronquor", "Lenitrex", "Ostavine", "Pulmerol"), "{n}", (
        _a("Single dose", "the single dose of {s} is {v} / a single dose of {s} is {v} / {s} is given in doses of {v}", "measure", choices=("g", "l")),
        _a("Tablets a pack", "a pack of {s} holds {v} tablets / {s} is sold in packs of {v} tablets / each pack of {s} contains {v} tablets", "count", 6, 120, noun="tablets", more="have"),
        _a("Maker", "{s} is made in {v} / {s} is produced in {v} / the factory that makes {s} is in {v}", "place"),
        _a("Approved", "{s} was approved on {v} / the approval of {s} dates from {v} / regulators approved {s} on {v}", "date", 1995, 2026),
        _a("Form", "{s} is taken as {v} / {s} comes as {v} / patients take {s} as {v}", "choice", choices=("a syrup", "drops", "capsules", "a powder", "an inhaler")),
        _a("Response rate", "{s} helped {v} of the patients / {v} of the patients responded to {s} / of those treated with {s}, {v} improved", "percent"),
    )),
    Domain("Company", ("Halvorsen Freight", "Tessera Labs", "Mondrake", "Quillon Foods", "Arvida Energy", "Brightwater", "Sable & Finch", "Orinoco Textiles", "Kepler Works"), "{n}", (
        _a("Employees", "{s} employs {v} people / {s} has {v} employees / {v} people work for {s}", "count", 12, 48_000, noun="employees", more="have"),
        _a("Founded", "{s} was founded in {v} / the founding of {s} dates to {v} / {s} was set up in {v}", "year"),
        _a("Head office", "{s} has its head office in {v} / the head office of {s} is in {v} / {s} is headquartered in {v}", "place"),
        _a("Chief executive", "{s} is led by {v} / {v} heads {s} / the chief executive of {s} is {v}", "person"),
        _a("Revenue in dollars", "the revenue of {s} was {v} dollars / {s} had a revenue of {v} dollars / {s} took in {v} dollars", "large"),
        _a("Export share", "{s} exports {v} of its output / {v} of what {s} makes is exported / exports are {v} of the output of {s}", "percent"),
    )),
    Domain("Course", ("Algebra", "Pottery", "Marine Biology", "Welding", "Roman Law", "Typography", "Beekeeping", "Phonetics", "Soil Science"), "the {n} course", (
        _a("Credits", "{s} is worth {v} credits / {s} gives {v} credits / you earn {v} credits with {s}", "count", 2, 30, noun="credits", more="have"),
        _a("Lecturer", "{s} is taught by {v} / {v} teaches {s} / the lecturer of {s} is {v}", "person"),
        _a("Begins", "{s} begins on {v} / the first day of {s} is {v} / {s} starts on {v}", "date", 2015, 2026),
        _a("Fee", "{s} costs {v} / the fee for {s} is {v} / for {s}, a fee of {v} is charged", "money", 20, 2400),
        _a("Places", "{s} has {v} places / there is room for {v} students in {s} / {s} takes {v} students", "count", 8, 180, noun="places", more="have"),
        _a("Taught in", "{s} is taught in {v} / the language of {s} is {v}", "choice", choices=("French", "Spanish", "English", "Finnish", "Arabic")),
    )),
    Domain("Film", ("The Glass Orchard", "Night Tide", "Seven Lanterns", "A Winter in Oran", "The Quiet Signal", "Paper Kingdoms", "Low Season"), "{n}", (
        _a("Director", "{s} was directed by {v} / {v} directed {s} / the director of {s} was {v}", "person"),
        _a("Released", "{s} was released on {v} / the release of {s} was on {v} / {s} came out on {v}", "date", 1930, 2026),
        _a("Running time", "{s} runs for {v} / {s} lasts {v} / the running time of {s} is {v}", "measure", choices=("min",)),
        _a("Budget in dollars", "{s} had a budget of {v} dollars / {s} cost {v} dollars to make / the budget of {s} was {v} dollars", "large"),
        _a("Shot in", "{s} was shot in {v} / the filming of {s} took place in {v} / {s} was filmed in {v}", "place"),
        _a("Awards", "{s} won {v} awards / {v} awards went to {s} / {s} received {v} awards", "count", 2, 40, noun="awards", more="have"),
    )),
    Domain("Machine", ("Ventra 30", "Oltro S", "Pressmaster", "Duraform", "Hydron X", "Lumo 5", "Tornado Pro", "Karst Mini"), "the {n}", (
        _a("Weight", "{s} weighs {v} / the weight of {s} is {v} / {s} has a weight of {v}", "measure", choices=("kg", "t")),
        _a("Power", "{s} draws {v} / {s} uses {v} of power / the power of {s} is {v}", "measure", choices=("kW", "MW")),
        _a("Warranty", "{s} has a warranty of {v} / the warranty on {s} lasts {v} / {s} is under warranty for {v}", "measure", choices=("years",)),
        _a("Price", "{s} costs {v} / the price of {s} is {v} / {s} is sold for {v}", "money", 40, 9000),
        _a("Made in", "{s} is made in {v} / {s} is built in {v} / the plant that builds {s} is in {v}", "place"),
        _a("Programmes", "{s} has {v} programmes / there are {v} programmes on {s} / {s} offers {v} programmes", "count", 3, 30, noun="programmes", more="have"),
        _a("Colour", "{s} comes in {v} / {s} is sold in {v} / the colour of {s} is {v}", "choice", choices=("red", "grey", "white", "dark blue", "green")),
    )),
    Domain("Village", ("Ostrava Dolna", "Kirkhelle", "Santa Oria", "Valcroix", "Brandsund", "Tormes Alto", "Lindholt", "Mirador"), "{n}", (
        _a("Inhabitants", "{s} has {v} inhabitants / {v} people live in {s} / the population of {s} is {v}", "count", 180, 90_000, noun="inhabitants", more="have"),
        _a("Altitude", "{s} lies at an altitude of {v} / {s} is {v} above sea level / the altitude of {s} is {v}", "measure", choices=("m", "km", "ft")),
        _a("Mayor", "the mayor of {s} is {v} / {v} is the mayor of {s} / {s} has {v} as its mayor", "person"),
        _a("First mentioned", "{s} was first mentioned in {v} / the first mention of {s} is from {v}", "year"),
        _a("Schools", "{s} has {v} schools / there are {v} schools in {s} / {v} schools stand in {s}", "count", 2, 24, noun="schools", more="have"),
    )),
    Domain("Player", ("Ilse Brandt", "Mateo Quiroga", "Dana Petrescu", "Kofi Mensah", "Aoife Nolan", "Juan Villar", "Tuva Berg", "Milan Kos"), "{n}", (
        _a("Goals", "{s} scored {v} goals / {v} goals were scored by {s} / the goals of {s} number {v}", "count", 2, 60, noun="goals", more="have"),
        _a("Matches", "{s} played {v} matches / {v} matches were played by {s} / {s} took part in {v} matches", "count", 5, 420, noun="matches", more="have"),
        _a("Joined", "{s} joined the club on {v} / the club signed {s} on {v}", "date", 1998, 2026),
        _a("Born in", "{s} was born in {v} / the birthplace of {s} is {v}", "place"),
        _a("Position", "{s} plays as {v} / the position of {s} is {v} / {s} is used as {v}", "choice", choices=("goalkeeper", "winger", "defender", "striker")),
    )),
    Domain("Release", ("Alder", "Basil", "Clover", "Dill", "Elder", "Fennel", "Ginkgo", "Hazel"), "the {n} release", (
        _a("Published", "{s} was published on {v} / the publication date of {s} is {v} / {s} came out on {v}", "date", 2008, 2026),
        _a("Download", "the download of {s} is {v} / {s} has a download size of {v} / to download {s}, {v} are fetched", "measure", choices=("GB",)),
        _a("Maintainer", "{s} is maintained by {v} / {v} maintains {s} / the maintainer of {s} is {v}", "person"),
        _a("Fixed faults", "{s} fixes {v} faults / {v} faults are fixed in {s} / in {s}, {v} faults are gone", "count", 3, 900, noun="fixed faults", more="have"),
        _a("Licence", "{s} is under the {v} licence / the licence of {s} is {v} / {s} is licensed under {v}", "choice", choices=("MIT", "Apache", "GPL", "BSD")),
    )),
    Domain("Trial", ("AURORA", "BEACON", "CEDAR", "DELTA-2", "ELMWOOD", "FJORD", "GARNET"), "the {n} trial", (
        _a("Participants", "{s} enrolled {v} participants / {v} participants took part in {s} / {s} had {v} participants", "count", 24, 9000, noun="participants", more="have"),
        _a("Duration", "{s} lasted {v} / {s} ran for {v} / the duration of {s} was {v}", "measure", choices=("weeks", "years", "days")),
        _a("Led by", "{s} was led by {v} / {v} led {s} / the head of {s} was {v}", "person"),
        _a("Improved", "in {s}, {v} of the participants improved / {s} found that {v} of the participants improved / an improvement was seen in {v} of those in {s}", "percent"),
        _a("Dropouts", "{s} had {v} dropouts / {v} people dropped out of {s} / there were {v} dropouts in {s}", "count", 2, 300, noun="dropouts", more="have"),
        _a("Site", "{s} was carried out in {v} / {s} took place in {v} / the site of {s} was {v}", "place"),
    )),
    Domain("Flat", ("Mill Lane 4", "Quay Street 12", "Elm Court 7", "Station Road 31", "Castle Yard 2", "Rose Hill 18"), "the flat at {n}", (
        _a("Rent", "{s} costs {v} a month / the rent of {s} is {v} per month / {s} is let for {v} a month", "money", 380, 3900),
        _a("Rooms", "{s} has {v} rooms / there are {v} rooms in {s} / {s} consists of {v} rooms", "count", 2, 9, noun="rooms", more="have"),
        _a("Floor area", "{s} has a floor area of {v} square metres / {s} measures {v} square metres / the floor area of {s} is {v} square metres", "count", 24, 190, noun="square metres", more="have"),
        _a("Free from", "{s} is free from {v} / {s} can be rented from {v} / one can move into {s} from {v}", "date", 2020, 2026),
        _a("Owner", "{s} belongs to {v} / {v} owns {s} / the owner of {s} is {v}", "person"),
        _a("Heating", "{s} is heated with {v} / the heating of {s} runs on {v}", "choice", choices=("gas", "oil", "wood pellets", "district heat")),
    )),
    Domain("Line", ("Blue", "Coastal", "Airport", "Valley", "Ring", "Northern", "Forest", "Museum"), "the {n} line", (
        _a("Stops", "{s} has {v} stops / there are {v} stops on {s} / {s} calls at {v} stops", "count", 6, 64, noun="stops", more="have"),
        _a("First departure", "the first train on {s} leaves at {v} / {s} starts running at {v} / on {s}, service begins at {v}", "clock"),
        _a("Fare", "a ticket for {s} costs {v} / the fare on {s} is {v} / {s} charges a fare of {v}", "money", 2, 40),
        _a("Opened", "{s} was opened on {v} / the opening of {s} was on {v} / {s} went into service on {v}", "date", 1900, 2026),
        _a("Length", "{s} is {v} long / the length of {s} is {v} / {s} runs over {v}", "measure", choices=("km",)),
        _a("Punctual trains", "on {s}, {v} of the trains are on time / {v} of the trains on {s} are punctual", "percent"),
    )),
    Domain("Loan", ("Starter", "Family", "Harvest", "Bridge", "Student", "Green", "Craft"), "the {n} loan", (
        _a("Interest", "{s} carries interest of {v} a year / the yearly interest on {s} is {v} / {s} has an annual rate of {v}", "percent"),
        _a("Term", "{s} runs for {v} / the term of {s} is {v} / {s} is repaid over {v}", "measure", choices=("years",)),
        _a("Largest sum in rupees", "{s} goes up to {v} rupees / the largest sum of {s} is {v} rupees / at most {v} rupees are lent with {s}", "large"),
        _a("Fee", "{s} has a fee of {v} / the fee for {s} is {v} / a fee of {v} is due for {s}", "money", 10, 500),
        _a("Adviser", "questions on {s} are answered by {v} / the adviser for {s} is {v} / {v} advises on {s}", "person"),
    )),
    Domain("Garden", ("Abbey", "Tulip", "Physic", "Water", "Terrace", "Bamboo", "Palm"), "the {n} garden", (
        _a("Visitors", "{s} had {v} visitors / {v} people visited {s} / {s} was visited by {v} people", "large"),
        _a("Opens", "{s} opens at {v} / the gates of {s} open at {v} / {s} can be entered from {v}", "clock"),
        _a("Laid out", "{s} was laid out in {v} / the laying out of {s} took place in {v}", "year"),
        _a("Gardeners", "{s} employs {v} gardeners / {v} gardeners work in {s} / {s} has {v} gardeners", "count", 2, 60, noun="gardeners", more="have"),
        _a("Entry", "entry to {s} costs {v} / for {s}, visitors pay {v} / {s} charges {v} for entry", "money", 2, 40),
    )),
)  # fmt: skip


def subject(domain: Domain, rng: random.Random) -> str:
    """The name of a thing of a domain."""
    return domain.pattern.format(n=rng.choice(domain.names))
