-- The sealed key of the certificate that checks of a monitor present.
ALTER TABLE monitors ADD COLUMN tls_client_key BLOB;
