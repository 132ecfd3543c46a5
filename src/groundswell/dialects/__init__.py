"""The providers' wire formats. Pure: what to send for a request, and what an answer means.

Every dialect is a module with the same functions: `encode` turns a request into a `Call` (or a fault, where the
provider has no such thing), `decode` turns status, headers and body into a reply or a classified fault.
"""
