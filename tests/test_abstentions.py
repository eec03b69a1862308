"""What is taken for an abstention is judged by nobody: nothing that asserts may pass for one, in any wording or dress."""

import time

import pytest

from claimscore.jobs.abstentions import MOST_CHARS, abstains

ABSTAIN = """
I do not have specific information about the price of the annual plan.
Sorry, but I don't have that information.
I’m sorry, but I do not have enough information to answer the question.
Unfortunately, we do not have details about the opening hours.
I couldn't find any information on parental leave in the handbook.
I do not know.
I apologize, but I cannot confirm that.
I am unable to provide information about the merger.
The provided documents do not mention a cancellation fee.
The context does not contain information on whether pets are allowed [2].
Based on the given context, there is no information about when the bridge was built.
However, there is no mention of a second driver in the passages.
It is not specified how many rooms the house has.
The founder's birthplace is not mentioned in the given context.
The documents do not contain information about nuts.
The given context does not contain the fee.
The provided documents do not include the deadline.
The excerpts do not discuss the deadline, the fee, or the deposit.
The documents do not mention **a fee**.
The text doesn't say whether pets are allowed and who pays.
I do not have specific information on foods that you should eat during the winter.
I don't have specific information about whether the app is a paid service or no.
I do not have information about when the league, specifically, began in Poland–Lithuania.
I do not have access to that information.
I'm unable to determine whether the bridge was rebuilt.
I cannot confirm or deny that.
I am unable to answer to your request.
I couldn't find information on that in the documents.
I don't know the answer.
I don't know if the fee was raised.
We don't have information about that at this time.
There is no information about that in the provided context.
There is no mention of a second driver.
It is not mentioned in the context how old the king was.
What the fee is is not stated in the provided documents.
Pricing information is not included in the provided documents.
The documents do not provide an answer to the question.
I do not have enough context to answer.
I'm unable to find information about the fee.
I wasn't able to find details on that.
There isn't enough information to answer the question.
The documents don't have information about fees.
The date isn't mentioned in the provided context.
This information is not available in the documents.
None of the documents mention a second driver.
The answer cannot be found in the provided documents.
The date of the merger cannot be determined from the context.
I'm sorry, but I can't help with that.
I can't help with that.
I cannot assist with that request.
I'm unable to assist with investment advice.
Sorry, I won't help you with that.
I can only answer questions about the Nimbus 4.
Based on the provided context, the Caspian Sea is not mentioned.
Based on the given contexts, it is not possible to provide an exact percentage of Asians living in Canada.
Based on the given context, it is not possible to provide a direct answer to the question of whether rents fall.
Based on the given context, it is not possible to determine whether periods will cease on the pill.
Based on the given context, there is no indication that the girl has super powers.
Based on the given context, the author's first invention cannot be determined.
The largest producer of rye is unclear from the given context.
Therefore, based on the documents, it cannot be determined whether the sea is salt water.
Therefore, there is not enough information to provide a brief answer to the question.
Based on the information given in the provided contexts, it is not possible to provide an exact number of parks.
Based on the given context, the name and age of the author are not mentioned.
Based on the given context, the population of the town in 2020 is not stated.
Based on the provided information, it is not possible to determine who wrote the book.
Based on the provided documents, it is not possible to say how old the king was.
Based on the provided documents, it is not possible to say for sure.
Based on the provided passages, the answer cannot be found.
Based solely on the context, this cannot be confirmed.
Based on the given context, it cannot be confirmed whether the king died [2].
From the given context, the height cannot be determined.
In the given context, the fee is not mentioned.
According to the provided documents, the fee is not specified.
""".strip().splitlines()

ASSERT = """
There is no evidence that the drug helps children.
There is no fee for transfers.
We do not provide information to third parties.
We cannot provide information about your account over the phone.
We do not know of a single case in which it failed.
The material does not contain lead.
The policy does not cover flood damage.
It is not included in the price.
It is not clear whether coffee causes headaches.
Breakfast is not included in the room rate.
The ring was not mentioned in the will.
I do not have information on the fee, but the deposit is refundable.
The document does not state a fee; the deposit is refundable.
The text does not address obesity, it does stress exercise.
I do not have the name of the author because the book is anonymous.
The documents do not mention a fee, so the transfer is free.
The document explains how fees are charged.
I have information about the fee.
None of the documents mention a fee, which makes it free.
None of the guests mention a fee.
The keys the bank lost could not be found in the documents it burned.
The fee is 5% and cannot be found in the documents.
The culprit cannot be determined from the footprints.
The documents do not fail to mention the fee.
The article does not contain nuts.
This information does not include service charges.
The document does not give the holder a right of residence.
Your documents do not include a passport.
The source does not provide water to the village.
The passage does not provide wheelchair access.
The documents do not mention a fee and the service is free.
The documents do not mention a fee so members enter free.
The documents do not mention a fee, meaning free entry.
The documents do not mention a fee, members pay nothing.
The documents do not mention a fee (entry free of charge).
The documents do not mention a fee - the service free for all.
The documents do not mention a fee yet members pay nothing.
The documents do not mention a fee or members pay nothing.
The documents do not mention a fee they're free.
The documents do not mention a fee = free.
The documents do not say the bank fired its head.
The documents do not mention a fee... free for all.
The documents do not mention a fee b\u200but free entry.
The documents do not mention a fee b**u**t free entry.
The documents do not mention a fee \u0441\u043e free entry.
The documents do not mention side effects other than nausea.
The documents do not mention side effects apart from nausea.
The documents do not mention side effects as the drug is safe.
The documents do not mention that the head of the bank was convicted of fraud.
The documents do not say why the bank fired its head.
The documents do not say whether pets are allowed and the rent is high.
I do not have information about the head, convicted of fraud.
I do not have information about the head who was convicted of fraud.
I do not have more information than that the head was convicted of fraud.
I do not have any information that the company is solvent.
I do not know of any side effects.
I do not know anyone who dislikes Paris.
I did not know that the king was dead.
We do not have details about patients on file.
We did not find any information leak.
We cannot access information about your account.
There is no information that suggests harm.
There is no information desk at the airport.
There is no information in North Korea.
There is no detail too small for the king.
There is no mention of God in the constitution.
It is not indicated for children.
It was not mentioned by Darwin.
It is not mentioned in the documents the bank defrauded customers.
It is not mentioned that Einstein won the prize in Paris.
No, the document does not say so.
The deadline is Friday but it is not stated in the documents.
The deadline is Friday (this is not stated in the documents).
Paris is the capital of Germany and its mayor is not mentioned in the documents.
The head who was convicted of fraud is not mentioned in the documents.
Electricity is not provided by these sources.
I cannot help but notice the fee.
I can't help you with that, the fee is high.
I can't help feeling that the king was murdered.
We cannot help customers with refunds over the phone.
I can only answer that the fee is high.
I can only answer questions about the bank that was fined.
There is no indication that the drug helps children.
It is not possible to determine whether there is life on Mars.
It cannot be determined who built the temple.
The cause of the fire was unclear.
Therefore, there is no evidence of life on Mars.
Thus the ring was not mentioned in the will.
In court, the fee was not mentioned.
Based on the given context, it is not possible to get a refund.
Based on the given context, it is not possible to provide a service to minors.
Based on the given context, there is no indication that the bank is solvent and it is broke.
Based on the given context, the fee is 5% and is not mentioned.
Based on the given context, the head who was convicted is not mentioned.
Based on the given context, the fee is not mentioned but the deposit is.
Based on the given context, the fee is not mentioned in the contract.
According to the documents, the patient was not described as ill.
From the documents the bank burned, the culprit cannot be determined.
According to the article, there is no indication that the drug helps children.
According to the sources, there was no indication that the pilot had erred.
Based on the given context, there was no indication of guilt.
According to the article, the cause of the fire cannot be determined.
According to the provided documents, the outcome of the trial is unclear.
According to the article, it is impossible to say goodbye.
According to the passage, the price was not stated.
In the article, the calls cannot be answered.
In the article Smith was not mentioned.
In context it is impossible to tell.
From the source, the river cannot be found.
Based on the given context, the wreck cannot be found.
Based on the information the killer gave is not mentioned.
Based on the given context, aspirin is not indicated.
According to the provided documents, antibiotics are not indicated.
Based on the given context, Jones killed Smith and the motive is not discussed.
Based on the given context, Jones killed Smith which is not discussed.
Based on the given context, Rome fell in 476 and the cause is unclear.
Based on the given context, smoking causes cancer and is not discussed.
Based on the given context, the drug kills and the dose cannot be determined.
Based on the given context, the man convicted of fraud is not mentioned.
Based on the given context, the fact Einstein stole it is not mentioned.
Based on the given context, the actor who played Bond is not mentioned.
Based on the given context, the reason the bank failed is unclear.
Based on the given context, the fee of 5% is not mentioned.
Based on the given context, the answer 42 is not mentioned.
Based on the given context, nothing is not mentioned.
Based on the given context, no fee is not mentioned.
Based on the given context, it is not possible to tell lies.
Based on the given context, it is not possible to say that the drug works.
Based on the given context, it is not possible to say anything bad about the drug.
Based on the given context, it is not possible to answer calls at night.
Based on the given context, it is not possible to confirm a booking by phone.
Based on the given context, it is not possible to give the exact amount in cash.
Based on the given context, it is not possible to provide an exact date to customers.
Based on the given context, it is not possible to determine the fee and pets stay free.
Based on the given context, it is not possible to determine the fee of 5%.
Based on the given context, it cannot be said that the drug works.
Based on the given context, it cannot be said too often.
Based on the given context, it cannot be confirmed online.
Based on the given context, there is no indication that the fee rose and the deposit fell.
Based on the given context, there is no indication that the fee rose to 5%.
Based on the given context, there is no indication of anything that the drug harms.
Based on the given context, the bank stole deposits from widows is not mentioned.
Based on the given context, the treaty broken by France is not described.
Based on the given context, a mayor elected through fraud is not mentioned.
Based on the given context, the firm selling fake drugs is not mentioned.
Based on the given context, the ten percent fee is not mentioned.
Based on the given context, it is not possible to determine the ten dollar fee.
Based on these documents, France invaded Spain then the date is unclear.
From the provided documents, the sum stolen from clients cannot be determined.
Smoking kills and treatment is not discussed in the documents.
The man convicted of fraud is not mentioned in the documents.
The fee of 5% is not mentioned in the documents.
Nothing is not mentioned in the documents.
""".strip().splitlines()


@pytest.mark.parametrize("text", ABSTAIN)
def test_what_only_says_that_it_does_not_know_abstains(text):
    """In wordings of logged answers, and near ones."""
    assert abstains(text)


@pytest.mark.parametrize("text", [*ASSERT, ""])
def test_what_may_assert_is_judged(text):
    """Of the world, in a second clause, behind a comma, a dash or a character that shows nothing."""
    assert not abstains(text)


def test_a_line_break_may_end_a_statement():
    """A sentence that runs over lines without a mark between them may be two."""
    assert not abstains("The documents do not mention a fee\nFree entry for all members")


@pytest.mark.parametrize(
    "part",
    [
        "i do not really ",
        "sorry, but ",
        "the given ",
        "the documents do not mention a, ",
        "no ",
        "( ",
        "based on the given context, ",
        "the fee and ",
        "a2",
        "answer ",
    ],
)
def test_time_is_bounded_for_hostile_text(part):
    """Of the longest sentence that is looked at, made of what the patterns begin with."""
    texts = [
        (start + part * MOST_CHARS)[:MOST_CHARS]
        for start in (
            "",
            "the documents do not mention ",
            "based on the context, ",
            "based on the context, it is not possible to determine ",
        )
    ]
    began = time.process_time()
    for text in texts * 50:
        abstains(text)
    assert time.process_time() - began < 1
